"""Count the bytes that each rank sends and gets over each link.

Letters of shapes: N ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainer.muon.costs import LINKS, Cluster, Link, latency_ns, link_ns, node_of
from trainer.muon.fragments import numel
from trainer.muon.jobs import LEGS, Ints, Job, Leg, Plan
from trainer.muon.moves import Moves, moves_of

# Moves that are held in memory at once, about.
_MAX_MOVES = 2**21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """What a leg of a job, or a whole plan, moves."""

    # Bytes that each rank sends over each link, [N].
    sent: dict[Link, Ints]
    # Bytes that each rank gets, [N].
    received: dict[Link, Ints]
    # How many others each rank sends to or gets from, whichever are more, [N].
    num_peers: Ints
    # A rank for each rank, [N]; the same for two if one hears of the other, directly or not.
    circles: Ints


def bytes_moved(plan: Plan) -> dict[Link, tuple[Ints, Ints]]:
    """Return for each link what each rank sends [N] and gets [N] in a step."""
    each = [leg_traffic(plan, job, leg=leg) for job in plan.jobs for leg in LEGS[job.route]]
    nothing = np.zeros(plan.cluster.num_ranks, dtype=np.int64)
    return {
        link: (
            sum((it.sent[link] for it in each), nothing),
            sum((it.received[link] for it in each), nothing),
        )
        for link in LINKS
    }


def leg_traffic(plan: Plan, job: Job, *, leg: Leg) -> Traffic:
    """Count what one leg of a job moves."""
    num_ranks = plan.cluster.num_ranks
    sent = {link: np.zeros(num_ranks, dtype=np.int64) for link in LINKS}
    received = {link: np.zeros(num_ranks, dtype=np.int64) for link in LINKS}
    is_pair_NN = np.zeros((num_ranks, num_ranks), dtype=bool)
    for part in _parts(plan, job, leg=leg):
        moves = moves_of(plan, part, leg=leg)
        sizes = numel(moves.boxes) * plan.options.wire_bytes
        for link, is_over in _over(moves, plan.cluster).items():
            np.add.at(sent[link], moves.sources[is_over], sizes[is_over])
            np.add.at(received[link], moves.targets[is_over], sizes[is_over])
        is_pair_NN[moves.sources, moves.targets] = True
    sources, targets = is_pair_NN.nonzero()
    return Traffic(
        sent=sent,
        received=received,
        num_peers=np.maximum(is_pair_NN.sum(axis=0), is_pair_NN.sum(axis=1)),
        circles=_circles(sources, targets, num_ranks=num_ranks),
    )


def traffic_ns(traffic: Traffic, link: Link, cluster: Cluster) -> Ints:
    """Return how long each rank's end of a link is busy, [N]; both ways at once."""
    sent, received = traffic.sent[link], traffic.received[link]
    return np.maximum(link_ns(sent, link, cluster), link_ns(received, link, cluster))


def leg_ns(traffic: Traffic, cluster: Cluster) -> Ints:
    """Return how long each rank takes for a leg, all links at once, [N]."""
    busy = [traffic_ns(traffic, link, cluster) for link in LINKS]
    return np.maximum(*busy) + latency_ns(traffic.num_peers, cluster)


def _parts(plan: Plan, job: Job, *, leg: Leg) -> Iterator[Job]:
    """Yield the job in parts whose moves fit in memory."""
    fragments = [plan.fragments[plan.patterns[unit]].ranks for unit in job.units]
    num_copies = fragments[0].shape[1]
    each = num_copies * num_copies if leg == "share" else num_copies
    filled = np.cumsum([len(ranks) * each for ranks in fragments]) // _MAX_MOVES
    ends = [*(np.flatnonzero(np.diff(filled)) + 1), len(job.units)]
    for start, end in zip([0, *ends], ends, strict=False):
        yield replace(job, units=job.units[start:end], owners=job.owners[start:end])


def _over(moves: Moves, cluster: Cluster) -> dict[Link, NDArray[np.bool_]]:
    is_near = node_of(moves.sources, cluster) == node_of(moves.targets, cluster)
    return {"nvlink": is_near, "network": ~is_near}


def _circles(sources: Ints, targets: Ints, *, num_ranks: int) -> Ints:
    """Return the least rank that each hears of, directly or through others."""
    circles = np.arange(num_ranks)
    while True:
        known = circles.copy()
        least = np.minimum(known[sources], known[targets])
        np.minimum.at(known, sources, least)
        np.minimum.at(known, targets, least)
        known = known[known]
        if (known == circles).all():
            return circles
        circles = known
