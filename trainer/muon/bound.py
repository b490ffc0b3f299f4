"""Bound from below how long a step takes, whatever the plan.

Letters of shapes: N ranks, F fragments of a unit, R copies.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainer.muon.costs import APPLY_BYTES, PACK_BYTES, Cluster, memory_ns, node_of
from trainer.muon.fragments import numel
from trainer.muon.jobs import Fragments, Ints, Plan
from trainer.muon.owners import held_weights, units_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Times, in seconds, that no plan beats for these layouts, with the same matrices redone."""

    # Each matrix once, and all weights where they are, dealt evenly; or the most of what a rank
    # has to do with the weights that it holds.
    work_s: float
    # The costliest matrix.
    unit_s: float
    # What has to go from node to node, dealt evenly.
    network_s: float

    @property
    def bound_s(self) -> float:
        """The largest of them."""
        return max(self.work_s, self.unit_s, self.network_s)


def bound(plan: Plan, *, filler_ns: Ints | None = None) -> Bound:
    """Return what no plan beats; `filler_ns`, [N], is other work of each rank."""
    cluster = plan.cluster
    weights_N = held_weights(plan.patterns, plan.fragments, num_ranks=cluster.num_ranks)
    own_N = memory_ns(weights_N * (PACK_BYTES + APPLY_BYTES), cluster)
    own_N = own_N if filler_ns is None else own_N + filler_ns
    costs = units_ns(plan.units, cluster=cluster, options=plan.options)
    num_bytes = least_bytes(plan)
    return Bound(
        work_s=max((sum(costs) + int(own_N.sum())) / cluster.num_ranks, int(own_N.max())) / 1e9,
        unit_s=max(costs) / 1e9,
        network_s=num_bytes / cluster.num_ranks / cluster.network_bytes_s,
    )


def least_bytes(plan: Plan) -> int:
    """Return the bytes that have to go from node to node at least, by all ranks together."""
    return sum(_network_weights(plan)) * plan.options.wire_bytes


def _network_weights(plan: Plan) -> Iterator[int]:
    """Yield for each unit how many weights have to go from node to node at least."""
    known: dict[tuple[int, bool], int] = {}
    for job in plan.jobs:
        for unit, owners in zip(job.units, job.owners, strict=True):
            key = (plan.patterns[unit], len(owners) > 1)
            if key not in known:
                fragments = plan.fragments[key[0]]
                copies = fragments.ranks.T[:, :, None] if key[1] else [fragments.ranks]
                known[key] = sum(_least(fragments, ranks, plan.cluster) for ranks in copies)
            yield known[key]


def _least(fragments: Fragments, ranks: Ints, cluster: Cluster) -> int:
    """Return what moves at least if one rank computes a unit for the holders of all fragments.

    Its node lacks what no rank of it holds; then each other node gets once what any of its ranks
    holds. The best node is the one that holds most.
    """
    numbers = np.broadcast_to(np.arange(len(ranks))[:, None], ranks.shape)
    pairs = np.stack([node_of(ranks, cluster).ravel(), numbers.ravel()], axis=1)
    nodes, held = np.unique(pairs, axis=0).T
    sizes = numel(fragments.boxes)
    in_node = np.bincount(nodes, weights=sizes[held])
    return int(sizes.sum() + in_node.sum() - 2 * in_node.max())
