"""Run the experts of a layer on several ranks: tokens travel to their experts and back.

Letters of shapes: T tokens of this rank, K experts of a token, D width of the model, E experts, P
ranks that share them, R tokens that come to this rank.
"""

from collections.abc import Sequence
from typing import Any, Protocol, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers.integrations.moe import ExpertsInterface, grouped_mm_experts_forward

# What transformers calls the function below.
NAME = "regrow_expert_parallel"


class _Local:
    """The experts of this rank, as transformers' kernels read a module."""

    def __init__(self, module: nn.Module, *, num_experts: int) -> None:
        self._module = module
        self.num_experts = num_experts

    def __getattr__(self, name: str) -> object:
        found = getattr(self._module, name)
        return found.to_local() if isinstance(found, DTensor) else found


def _run_experts(
    module: nn.Module, hidden_TD: Tensor, experts_TK: Tensor, weights_TK: Tensor
) -> Tensor:
    """Send each token to the ranks of its experts, and add up what comes back."""
    group, num_experts = _group_of(module), cast("int", module.num_experts)
    num_ranks, each = dist.get_world_size(group), experts_TK.shape[1]
    chosen, order = experts_TK.flatten().sort(stable=True)
    sent_PE = torch.bincount(chosen, minlength=num_experts).view(num_ranks, -1)
    coming_PE = torch.empty_like(sent_PE)
    dist.all_to_all_single(coming_PE, sent_PE, group=group)
    sends, comes = sent_PE.sum(1).tolist(), coming_PE.sum(1).tolist()
    arrived_RD = _exchange(hidden_TD[order // each], comes, sends, group)
    own = torch.arange(sent_PE.shape[1], device=chosen.device).repeat(num_ranks)
    answered_RD = _answer(
        _Local(module, num_experts=sent_PE.shape[1]),
        arrived_RD,
        own.repeat_interleave(coming_PE.flatten()),
    )
    returned = _exchange(answered_RD, sends, comes, group)
    in_order = torch.empty_like(order)
    in_order[order] = torch.arange(len(order), device=order.device)
    answers_TKD = returned[in_order].unflatten(0, experts_TK.shape)
    return (answers_TKD * weights_TK[..., None]).sum(1).to(hidden_TD.dtype)


def _group_of(module: nn.Module) -> dist.ProcessGroup:
    weight = next(module.parameters())
    assert isinstance(weight, DTensor), "experts that are not shared out"
    return weight.device_mesh.get_group("expert_parallel")


def _answer(local: _Local, arrived_RD: Tensor, experts_R: Tensor) -> Tensor:
    """Run each token through its one expert; a token of zeros keeps ranks with none in step."""
    padded_RD = nn.functional.pad(arrived_RD, (0, 0, 0, 1))
    experts_R1 = nn.functional.pad(experts_R, (0, 1))[:, None]
    ones_R1 = padded_RD.new_ones(experts_R1.shape)
    out: Tensor = grouped_mm_experts_forward(cast("Any", local), padded_RD, experts_R1, ones_R1)
    return out[:-1]


def _exchange(
    rows: Tensor, comes: Sequence[int], sends: Sequence[int], group: dist.ProcessGroup
) -> Tensor:
    return cast("Tensor", _Exchange.apply(rows, comes, sends, group))


class _Way(Protocol):
    """What torch keeps for a backward pass: how many rows came and went, and the ranks."""

    way: tuple[list[int], list[int], dist.ProcessGroup]


class _Exchange(torch.autograd.Function):
    """An uneven all-to-all, whose gradients take the same way back."""

    @staticmethod
    def forward(
        ctx: _Way,
        rows: Tensor,
        comes: list[int],
        sends: list[int],
        group: dist.ProcessGroup,
    ) -> Tensor:
        ctx.way = comes, sends, group
        return _all_to_all(rows, comes, sends, group)

    @staticmethod
    def backward(ctx: _Way, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        comes, sends, group = ctx.way
        return _all_to_all(gradients[0], sends, comes, group), None, None, None


def _all_to_all(
    rows: Tensor, comes: list[int], sends: list[int], group: dist.ProcessGroup
) -> Tensor:
    out = rows.new_empty(sum(comes), *rows.shape[1:])
    dist.all_to_all_single(out, rows.contiguous(), comes, sends, group=group)
    return out


ExpertsInterface.register(NAME, _run_experts)
