"""Deal units to the ranks that orthogonalize them, so that all have as much to do.

Longest processing time first: each unit, the costliest first, goes to the rank with the least to
do. Letters of shapes: N ranks, F fragments of a unit, R copies.
"""

from collections.abc import Sequence

import numpy as np

from trainer.muon.costs import (
    APPLY_BYTES,
    PACK_BYTES,
    Cluster,
    memory_ns,
    node_of,
    product_ns,
)
from trainer.muon.flops import flops
from trainer.muon.fragments import numel
from trainer.muon.jobs import Fragments, Ints, Owners, PlanOptions
from trainer.muon.level import Ways, level
from trainer.muon.units import Unit


def units_ns(units: Sequence[Unit], *, cluster: Cluster, options: PlanOptions) -> list[int]:
    """Return how long a rank takes to orthogonalize each unit."""
    costs: dict[tuple[int, int], int] = {}
    for unit in units:
        if unit.shape not in costs:
            num = flops(*unit.shape, config=options.orthogonalize)
            costs[unit.shape] = max(1, product_ns(num, cluster))
    return [costs[unit.shape] for unit in units]


def is_redone(unit: Unit, fragments: Fragments, *, cluster: Cluster, options: PlanOptions) -> bool:
    """Return whether each copy of a unit is orthogonalized where it is.

    It is where the arithmetic of a weight takes less than its result on the slowest link between
    its copies.
    """
    if fragments.ranks.shape[1] == 1:
        return False
    if options.redo != "cheapest":
        return options.redo == "always"
    nodes_FR = node_of(fragments.ranks, cluster)
    is_near = (nodes_FR == nodes_FR[:, :1]).all()
    bytes_s = cluster.nvlink_bytes_s if is_near else cluster.network_bytes_s
    num = flops(*unit.shape, config=options.orthogonalize)
    return num / cluster.flops_s < unit.numel * options.wire_bytes / bytes_s


def deal(
    units: Sequence[Unit],
    patterns: Sequence[int],
    fragments: Sequence[Fragments],
    *,
    cluster: Cluster,
    options: PlanOptions,
) -> list[Owners]:
    """Return the owners of each unit: one for all its copies, or one a copy where it is redone."""
    costs = units_ns(units, cluster=cluster, options=options)
    held = [fragments[pattern].ranks for pattern in patterns]
    redone = {
        pattern: is_redone(unit, fragments[pattern], cluster=cluster, options=options)
        for unit, pattern in zip(units, patterns, strict=True)
    }
    busy_N = _memory_ns(patterns, fragments, cluster=cluster)
    nodes_busy = np.zeros(cluster.num_ranks, dtype=np.int64)
    owners: list[Owners] = [()] * len(units)
    # Of units that cost as much, those that fewer ranks hold first: the others level what is left.
    order = sorted(range(len(units)), key=lambda at: (-costs[at], held[at].size, at))
    for number in order:
        if redone[patterns[number]]:
            chosen = _one_a_copy(held[number], busy_N)
        else:
            chosen = _one(held[number], busy_N, nodes_busy, cluster=cluster)
        busy_N[chosen] += costs[number]
        np.add.at(nodes_busy, node_of(chosen, cluster), costs[number])
        owners[number] = tuple(chosen.tolist())
    ways = Ways(patterns, fragments, cluster=cluster, options=options)
    level(owners, costs=costs, ways=ways, busy_N=busy_N)
    return owners


def _memory_ns(
    patterns: Sequence[int], fragments: Sequence[Fragments], *, cluster: Cluster
) -> Ints:
    """Return how long each rank is busy with what it holds, whoever orthogonalizes it."""
    weights_N = held_weights(patterns, fragments, num_ranks=cluster.num_ranks)
    return memory_ns(weights_N * (PACK_BYTES + APPLY_BYTES), cluster)


def held_weights(
    patterns: Sequence[int], fragments: Sequence[Fragments], *, num_ranks: int
) -> Ints:
    """Return how many weights of some units each rank holds, [N]."""
    weights_N = np.zeros(num_ranks, dtype=np.int64)
    numbers, counts = np.unique(np.array(patterns), return_counts=True)
    for number, count in zip(numbers, counts, strict=True):
        it = fragments[number]
        np.add.at(weights_N, it.ranks, numel(it.boxes)[:, None] * count)
    return weights_N


def _one(ranks_FR: Ints, busy_N: Ints, nodes_busy: Ints, *, cluster: Cluster) -> Ints:
    """Return the holder with the least to do, of several that in the node with the least.

    So large matrices, which come first and are held by all, do not fill one node.
    """
    ranks = ranks_FR.ravel()
    loads = busy_N[ranks]
    alike = ranks[loads == loads.min()]
    return alike[nodes_busy[node_of(alike, cluster)].argmin()][None]


def _one_a_copy(ranks_FR: Ints, busy_N: Ints) -> Ints:
    """Return of each copy the holder with the least to do."""
    chosen_R = busy_N[ranks_FR].argmin(axis=0)
    owners: Ints = np.take_along_axis(ranks_FR, chosen_R[None], axis=0)[0]
    return owners
