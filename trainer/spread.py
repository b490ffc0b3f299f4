"""Spread a step over ranks: each with the whole model, or all with parts of it on two meshes."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import Parameter
from transformers import PreTrainedModel

from trainer.canary import Canary
from trainer.forward import Model
from trainer.mesh import MeshConfig, Meshes, make_meshes
from trainer.model import weights
from trainer.optimizer import global_norm
from trainer.parallel import Sharded, parallelize, sharded_norm
from trainer.ranks import Ranks
from trainer.records import Sample


class Spread(Protocol):
    """How ranks share the work of a step."""

    # Whether each rank holds a part of the model, so that all must do the same with it.
    is_sharded: bool

    def place(self, model: PreTrainedModel) -> Model:
        """Lay a model out, in place; return what reads rows with it."""

    def share(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return what this rank works at, given what it has rolled out."""

    def first(self, canaries: Sequence[Canary]) -> Sequence[Canary]:
        """Return what the first rank has found, on the ranks that look after the teacher."""

    def passing(self, what: str) -> AbstractContextManager[None]:
        """Name who is late if ranks wait for one another in a block of passes.

        Raises:
            RankError: some rank did not come in time.
        """

    def num_passes(self, own: int) -> int:
        """Return how often this rank must run the model, which has so many rows for it."""

    def sum_gradients(self, parameters: Iterable[Parameter], what: str) -> None:
        """Have each parameter's gradient be that of all ranks; one without has zeros.

        Raises:
            RankError: some rank did not come in time.
        """

    def norm(self, parameters: Iterable[Parameter]) -> float:
        """Return the norm of the whole gradient."""

    def whole(self, model: PreTrainedModel) -> dict[str, Tensor]:
        """Return the whole weights by name, on every rank."""


class Replicated:
    """Each rank, or the only one, holds the whole model, and works at what it has rolled out."""

    is_sharded = False

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def place(self, model: PreTrainedModel) -> Model:
        """Leave it as it is."""
        return model

    def share(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return them."""
        return list(samples)

    def first(self, canaries: Sequence[Canary]) -> Sequence[Canary]:
        """Return them on the first rank, nothing elsewhere: the teacher is the same on all."""
        return canaries if self._ranks.is_first else ()

    def passing(self, what: str) -> AbstractContextManager[None]:
        """Do nothing: nobody waits for anybody."""
        del what
        return nullcontext()

    def num_passes(self, own: int) -> int:
        """Return one for each row."""
        return own

    def sum_gradients(self, parameters: Iterable[Parameter], what: str) -> None:
        """Add them up, one after another."""
        self._ranks.sum_gradients(parameters, what)

    def norm(self, parameters: Iterable[Parameter]) -> float:
        """Return that of this rank's gradients, which are those of all."""
        return global_norm(it.grad for it in parameters if it.grad is not None)

    def whole(self, model: PreTrainedModel) -> dict[str, Tensor]:
        """Return the model's own tensors, not copies."""
        return weights(model)


class OnMeshes:
    """Ranks hold parts of the weights; those of a context group work at the same rows."""

    is_sharded = True

    def __init__(self, ranks: Ranks, config: MeshConfig, *, device: str) -> None:
        """Form the groups of ranks.

        Raises:
            ValueError: there is one rank alone, or the sizes do not fit the world.
        """
        if ranks.world == 1:
            raise ValueError("parallel on one rank; expected several, as torchrun starts them")
        # Torch would tell of each gather over two axes that it takes two steps.
        logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
        self._ranks = ranks
        self._meshes: Meshes = make_meshes(config, world=ranks.world, device=device)

    def place(self, model: PreTrainedModel) -> Model:
        """Shard it; every rank must have the same weights.

        Raises:
            ValueError: experts or heads cannot be shared out so.
        """
        parallelize(model, self._meshes)
        return Sharded(model=model, meshes=self._meshes)

    def share(self, samples: Sequence[Sample]) -> list[Sample]:
        """Return what the ranks of this context group have rolled out between them."""
        group = self._meshes.context.get_group("context")
        everyone: list[list[Sample]] = [[]] * dist.get_world_size(group)
        with self._ranks.waiting_for("the samples of a context group"):
            dist.all_gather_object(everyone, list(samples), group=group)
        return list(chain.from_iterable(everyone))

    def first(self, canaries: Sequence[Canary]) -> Sequence[Canary]:
        """Return those of the first rank, on all."""
        held: list[Sequence[Canary]] = [canaries]
        with self._ranks.waiting_for("canaries"):
            dist.broadcast_object_list(held, src=0)
        return held[0]

    def passing(self, what: str) -> AbstractContextManager[None]:
        """Leave word of what this rank waits for while weights and gradients travel."""
        return self._ranks.waiting_for(what)

    def num_passes(self, own: int) -> int:
        """Return the most that any rank has rows for: weights are gathered for each pass."""
        most = torch.tensor(own)
        with self._ranks.waiting_for("the number of passes"):
            dist.all_reduce(most, dist.ReduceOp.MAX)
        return int(most)

    def sum_gradients(self, parameters: Iterable[Parameter], what: str) -> None:
        """Fill in zeros: each backward pass has added up what there is."""
        del what
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def norm(self, parameters: Iterable[Parameter]) -> float:
        """Return it by one sum over all ranks."""
        with self._ranks.waiting_for("the norm of the gradient"):
            return sharded_norm(parameters, self._meshes)

    def whole(self, model: PreTrainedModel) -> dict[str, Tensor]:
        """Return new tensors, gathered one after another."""
        with self._ranks.waiting_for("the whole weights"):
            return {
                name: it.full_tensor() if isinstance(it, DTensor) else it.clone()
                for name, it in weights(model).items()
            }
