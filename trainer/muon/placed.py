"""Say where torch holds the parts of a parameter, in the words of a plan.

This is the one place that names what torch keeps to itself: `_StridedShard`.
"""

import numpy as np
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor import Replicate as TorchReplicate
from torch.distributed.tensor import Shard as TorchShard
from torch.distributed.tensor.placement_types import Placement as TorchPlacement
from torch.distributed.tensor.placement_types import _StridedShard

from trainer.muon.layout import Layout, Placement, Replicate, Shard, lay_out


def layout_of(name: str, tensor: Tensor) -> Layout:
    """Return who holds what of a parameter; a plain tensor is whole on every rank.

    Raises:
        ValueError: torch places it in a way that no plan knows.
    """
    if not isinstance(tensor, DTensor):
        ranks = np.arange(dist.get_world_size())
        return lay_out(name, tuple(tensor.shape), mesh=ranks, placements=(Replicate(),))
    return lay_out(
        name,
        tuple(tensor.shape),
        mesh=tensor.device_mesh.mesh.numpy(),
        placements=tuple(_placement(name, it) for it in tensor.placements),
    )


def local_part(tensor: Tensor) -> Tensor:
    """Return what this rank holds; it shares memory with the parameter."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _placement(name: str, placement: TorchPlacement) -> Placement:
    match placement:
        case TorchReplicate():
            return Replicate()
        case _StridedShard(dim=dim):
            return Shard(dim=dim, is_strided=True)
        case TorchShard(dim=dim):
            return Shard(dim=dim)
        case _:
            raise ValueError(f"{name}: {placement}, expected sharded or replicated weights")
