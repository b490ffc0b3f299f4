"""Lay a model out on a cluster: dense weights narrow, experts wide."""

from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from trainer.bench.muon_scale.models import Shapes, is_of_experts
from trainer.muon.costs import ADAMW_BYTES, Cluster, memory_ns
from trainer.muon.jobs import Ints
from trainer.muon.layout import Layout, Placement, Replicate, Shard, lay_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Meshes:
    """Two views of the same ranks; the last size of each is that of neighbours."""

    # Replicas of dense weights, and how many ranks share each.
    dense: tuple[int, int]
    # Replicas of experts, groups of experts, and how many ranks share each expert.
    expert: tuple[int, int, int]

    def __str__(self) -> str:
        return f"dense {_times(self.dense)}, experts {_times(self.expert)}"


def choose_meshes(num_ranks: int, *, dense_width: int, num_experts: int, node: int) -> Meshes:
    """Return meshes with as many groups of experts as fit, each shared within a node at most.

    Raises:
        ValueError: the ranks are no multiple of the width.

    Example:
        >>> str(choose_meshes(512, dense_width=8, num_experts=384, node=8))
        'dense 64 x 8, experts 1 x 128 x 4'
    """
    width = min(dense_width, num_ranks)
    if num_ranks % width:
        raise ValueError(f"{num_ranks} GPUs in groups of {width}, expected a multiple")
    groups = gcd(num_ranks, num_experts)
    shared = gcd(num_ranks // groups, node)
    return Meshes(
        dense=(num_ranks // width, width), expert=(num_ranks // groups // shared, groups, shared)
    )


def lay_out_all(model: Shapes, meshes: Meshes) -> dict[str, Layout]:
    """Return the layouts of what Muon trains: rows of an expert are cut, then its first dim."""
    ranks = np.arange(prod(meshes.dense))
    dense, expert = ranks.reshape(meshes.dense), ranks.reshape(meshes.expert)
    placements: tuple[Placement, ...] = (Replicate(), Shard(dim=0), Shard(dim=1))
    layouts = {}
    for name in model.membership.muon:
        shape = model.shapes[name]
        mesh = expert if is_of_experts(shape) else dense
        layouts[name] = lay_out(name, shape, mesh=mesh, placements=placements[: mesh.ndim])
    return layouts


def adamw_ns(model: Shapes, meshes: Meshes, cluster: Cluster) -> Ints:
    """Return how long each rank is busy with AdamW for embeddings and the like, [N]."""
    held = np.full(cluster.num_ranks, model.num_adamw // meshes.dense[1])
    return memory_ns(held * ADAMW_BYTES, cluster)


def _times(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))
