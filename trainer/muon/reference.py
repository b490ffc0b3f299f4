"""Muon on one device, one matrix after another: what every faster one must equal.

Letters: E experts, R rows, C columns.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from trainer.muon.apply import settle, update_of
from trainer.muon.config import MuonConfig
from trainer.muon.orthogonalize import orthogonalize
from trainer.muon.units import Membership, Unit


class ReferenceMuon:
    """The parameters of a model that Muon trains, and their momentum.

    A parameter without a gradient has one of zeros: its momentum goes on.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], membership: Membership, config: MuonConfig
    ) -> None:
        self.parameters = {name: parameters[name] for name in membership.muon}
        self.momentum = {
            name: torch.zeros_like(it, dtype=torch.float32) for name, it in self.parameters.items()
        }
        self.membership = membership
        self.config = config

    @torch.no_grad()
    def step(self) -> None:
        """Take one step."""
        for name, units in self.membership.muon.items():
            parameter, momentum = self.parameters[name], self.momentum[name]
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            update = update_of(grad, momentum, self.config)
            for unit in units:
                matrix = orthogonalize(view_of(update, unit), config=self.config.orthogonalize)
                settle(
                    view_of(parameter, unit),
                    view_of(momentum, unit),
                    matrix,
                    unit_shape=unit.shape,
                    lr=self.config.lr,
                    config=self.config,
                )


def view_of(tensor: Tensor, unit: Unit) -> Tensor:
    """Return the matrix [R, C] of a parameter, or of what has its shape."""
    by_expert_ERC = tensor.view(-1, *tensor.shape[-2:])
    return by_expert_ERC[unit.box.experts[0], slice(*unit.box.rows), slice(*unit.box.cols)]
