"""Shard a model over two meshes: dense weights and experts, each with replicas of its own.

Gradients are sums over all ranks and never means: what a rank adds to the loss is already divided
by the tokens of the whole step. Letters of shapes: S tokens of this rank, D width of the model, V
vocabulary, E experts.
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.nn import Parameter
from transformers import PreTrainedModel

from trainer import context_parallel, dispatch
from trainer.context_parallel import Part, gather_tokens, part_of, sharing
from trainer.mesh import DENSE, EXPERTS, Meshes
from trainer.pack import Packed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sharded:
    """A model that ranks hold together: every one of them must do as the others with it."""

    # After `parallelize`.
    model: PreTrainedModel
    meshes: Meshes

    @property
    def share(self) -> tuple[int, int]:
        """Which part of a row this rank adds to the loss, and of how many."""
        group = self.meshes.context.get_group("context")
        return dist.get_rank(group), dist.get_world_size(group)

    def states(self, packed: Packed) -> Tensor:
        """Return the last hidden states [T, D] of a whole row, on every rank of a context group.

        Ranks of one context group must give the same row, of other groups their own.
        """
        states_SD, part = hidden_part(self.model, packed, meshes=self.meshes)
        if not torch.is_grad_enabled():
            # Without a backward pass nothing puts the weights away.
            for module in self.model.modules():
                if isinstance(module, FSDPModule):
                    module.reshard()
        each = -(-packed.starts[-1] // self.share[1])
        missing = each - (part.end - part.start)
        padded_SD = nn.functional.pad(states_SD, (0, 0, 0, missing))
        group = self.meshes.context.get_group("context")
        return gather_tokens(padded_SD[None, None], group)[0, 0, : packed.starts[-1]]

    def head(self) -> Tensor:
        """Return the weight [V, D] of the head, of which gradients are added up over ranks."""
        return whole_head(self.model)


def parallelize(model: PreTrainedModel, meshes: Meshes) -> None:
    """Shard a model in place; every rank must have loaded the same weights.

    Raises:
        ValueError: experts or heads cannot be shared out so.
    """
    is_shared = meshes.config.expert_parallel > 1
    found = list(_experts(model))
    for name, experts in found:
        _check_experts(name, experts, meshes)
    if meshes.config.context > 1:
        model.set_attn_implementation(context_parallel.NAME)
    if found and is_shared:
        model.set_experts_implementation(dispatch.NAME)
    for _, experts in found:
        _shard_experts(experts, meshes)
    body = model.base_model
    is_tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    for layer in cast("nn.ModuleList", body.layers):
        _shard(layer, meshes)
    _shard(body, meshes)
    head = model.get_output_embeddings()
    if is_tied:
        head.weight = model.get_input_embeddings().weight
    else:
        head.weight = Parameter(
            distribute_tensor(head.weight.detach(), meshes.dense, [Replicate(), Shard(0)])
        )


def _experts(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules that hold the experts of a layer as tensors [E, …]."""
    for name, module in model.named_modules():
        if hasattr(module, "gate_up_proj") and isinstance(module.gate_up_proj, Parameter):
            yield name, module


def _check_experts(name: str, experts: nn.Module, meshes: Meshes) -> None:
    num, ranks = cast("int", experts.num_experts), meshes.config.expert_parallel
    if num % ranks:
        raise ValueError(f"{name}: {num} experts on expert_parallel {ranks}; expected a divisor")


def _shard_experts(experts: nn.Module, meshes: Meshes) -> None:
    for name, weight in list(experts.named_parameters(recurse=False)):
        if meshes.config.expert_parallel > 1:
            own = distribute_tensor(weight.detach(), meshes.experts[EXPERTS[2]], [Shard(0)])
            experts.register_parameter(name, Parameter(own))
    _sum(fully_shard(experts, mesh=meshes.experts[EXPERTS[:2]]))


def _shard(module: nn.Module, meshes: Meshes) -> None:
    _sum(fully_shard(module, mesh=meshes.dense[DENSE]))


def _sum(module: FSDPModule) -> None:
    """Have gradients added up: a mean would be one over the ranks of one view or the other."""
    module.set_gradient_divide_factor(1.0)
    module.set_force_sum_reduction_for_comms(enable=True)


def hidden_part(model: PreTrainedModel, packed: Packed, *, meshes: Meshes) -> tuple[Tensor, Part]:
    """Return the last hidden states [S, D] of this rank's part of a packed row, without padding.

    Ranks of one context group must give the same row, of other groups their own.
    """
    group = meshes.context.get_group("context")
    part = part_of(packed, rank=dist.get_rank(group), world=dist.get_world_size(group))
    with sharing(part, group) if meshes.config.context > 1 else nullcontext():
        answer = model.base_model(
            input_ids=part.input_ids_1S.to(model.device),
            position_ids=part.position_ids_1S.to(model.device),
            use_cache=False,
        )
    states_SD = cast("Tensor", answer.last_hidden_state[0])
    return states_SD[: part.end - part.start], part


def whole_head(model: PreTrainedModel) -> Tensor:
    """Return the weight [V, D] of the head on every rank; its gradients are added up."""
    weight = model.get_output_embeddings().weight
    assert isinstance(weight, DTensor), "a head that is not sharded"
    return weight.full_tensor(grad_placements=[Partial(), Partial()])


def sharded_norm(parameters: Iterable[Parameter], meshes: Meshes) -> float:
    """Return the Euclidean norm of the gradient of all weights, each counted once.

    One sum over all ranks, in double precision, whatever mesh a weight is on.
    """
    config = meshes.config
    total = torch.zeros((), dtype=torch.float64)
    for gradient in (it.grad for it in parameters if it.grad is not None):
        assert isinstance(gradient, DTensor), "a gradient that is not sharded"
        is_dense = gradient.device_mesh.mesh_dim_names == DENSE
        copies = config.dense_replicate if is_dense else config.expert_replicate
        local = gradient.to_local()
        total += torch.linalg.vector_norm(local, dtype=torch.float64).square().cpu() / copies
    dist.all_reduce(total)
    return float(total.sqrt())
