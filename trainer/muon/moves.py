"""Derive from a plan what each leg of a job moves, and who sends what to whom.

Letters of shapes: H held fragments of the units of a job, R copies, M moves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.muon.costs import node_of
from trainer.muon.fragments import row_box
from trainer.muon.jobs import Ints, Job, Leg, Plan, Transfer
from trainer.muon.units import Box


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """What is sent in one leg of a job, by all ranks or by those asked for."""

    # Numbers in `Plan.units`, [M].
    units: Ints
    # Ranks, [M].
    sources: Ints
    # Never the source itself, [M].
    targets: Ints
    # In the parameter, [M, 6].
    boxes: Ints


def sends(plan: Plan, job: Job, *, leg: Leg, rank: int) -> tuple[Transfer, ...]:
    """Return what a rank sends in a leg, in the order in which it is packed.

    By peer, then unit: so each peer finds what it gets in the order of `receives`. There is never
    more than one box of a unit for a peer.
    """
    moves = moves_of(plan, job, leg=leg, rank=rank)
    return _transfers(moves, moves.sources == rank, peers=moves.targets)


def receives(plan: Plan, job: Job, *, leg: Leg, rank: int) -> tuple[Transfer, ...]:
    """Return what a rank gets in a leg, in the order in which it is unpacked."""
    moves = moves_of(plan, job, leg=leg, rank=rank)
    return _transfers(moves, moves.targets == rank, peers=moves.sources)


def owned(job: Job, rank: int) -> tuple[int, ...]:
    """Return the units of a job that a rank orthogonalizes, in the order of its batch."""
    return tuple(unit for unit, owners in zip(job.units, job.owners, strict=True) if rank in owners)


def held(plan: Plan, job: Job, *, rank: int) -> tuple[tuple[int, Box], ...]:
    """Return the units of a job that a rank holds a fragment of, each with its fragment."""
    units, boxes_H6, ranks_HR = held_by_all(plan, job)
    mine = (ranks_HR == rank).any(axis=1)
    return tuple(
        (job.units[unit], row_box(box))
        for unit, box in zip(units[mine], boxes_H6[mine], strict=True)
    )


def held_by_all(plan: Plan, job: Job) -> tuple[Ints, Ints, Ints]:
    """Return place of the unit in the job [H], box [H, 6] and ranks [H, R] of each fragment."""
    fragments = [plan.fragments[plan.patterns[unit]] for unit in job.units]
    places = np.repeat(np.arange(len(job.units)), [len(it.boxes) for it in fragments])
    boxes_H6 = np.concatenate([it.boxes for it in fragments])
    return places, boxes_H6, np.concatenate([it.ranks for it in fragments])


def moves_of(plan: Plan, job: Job, *, leg: Leg, rank: int | None = None) -> Moves:
    """Return what a leg moves: all of it, or what one rank sends or gets."""
    holdings = _Holdings.of(plan, job)
    # Which replica a fragment is taken from depends on who holds the unit's other fragments.
    if rank is not None and leg != "gather":
        holdings = holdings.of_rank(rank)
    sources, targets, boxes = _LEGS[leg](plan, job, holdings)
    num_each = sources[0].size if len(sources) else 1
    units = np.repeat(np.array(job.units)[holdings.places], num_each)
    sources, targets, boxes = sources.reshape(-1), targets.reshape(-1), boxes.reshape(-1, 6)
    is_sent = (sources != targets) & (boxes[:, ::2] < boxes[:, 1::2]).all(axis=1)
    if rank is not None:
        is_sent &= (sources == rank) | (targets == rank)
    return Moves(
        units=units[is_sent],
        sources=sources[is_sent],
        targets=targets[is_sent],
        boxes=boxes[is_sent],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Holdings:
    """The fragments of a job's units, and who owns them."""

    # [H]: place of the unit in the job.
    places: Ints
    boxes_H6: Ints
    ranks_HR: Ints
    # Who sends each copy of a fragment its result.
    owners_HR: Ints

    @classmethod
    def of(cls, plan: Plan, job: Job) -> "_Holdings":
        places, boxes_H6, ranks_HR = held_by_all(plan, job)
        owners_HR = np.broadcast_to(np.array(job.owners)[places], ranks_HR.shape)
        return cls(places=places, boxes_H6=boxes_H6, ranks_HR=ranks_HR, owners_HR=owners_HR)

    def of_rank(self, rank: int) -> "_Holdings":
        mine = (self.ranks_HR == rank).any(axis=1) | (self.owners_HR == rank).any(axis=1)
        return _Holdings(
            places=self.places[mine],
            boxes_H6=self.boxes_H6[mine],
            ranks_HR=self.ranks_HR[mine],
            owners_HR=self.owners_HR[mine],
        )


# Sources, targets and boxes of what may be moved, as many for each fragment held.
_Sent = tuple[Ints, Ints, Ints]


def _gather(plan: Plan, job: Job, holdings: _Holdings) -> _Sent:
    ranks_HR, owners_HR = holdings.ranks_HR, holdings.owners_HR
    num_copies = ranks_HR.shape[1]
    if len(job.owners[0]) == num_copies:
        return ranks_HR, owners_HR, _repeated(holdings.boxes_H6, num_copies)
    sources_H1 = np.take_along_axis(ranks_HR, _nearest(plan, holdings)[:, None], axis=1)
    return sources_H1, owners_HR[:, :1], holdings.boxes_H6[:, None]


def _scatter(_: Plan, job: Job, holdings: _Holdings) -> _Sent:
    ranks_HR = holdings.ranks_HR
    num_copies = ranks_HR.shape[1]
    if job.route == "relayed":
        boxes_HR6 = _slices(holdings.boxes_H6, num_copies)
    else:
        boxes_HR6 = _repeated(holdings.boxes_H6, num_copies)
    return holdings.owners_HR, ranks_HR, boxes_HR6


def _share(_: Plan, __: Job, holdings: _Holdings) -> _Sent:
    """Let each holder send its slice to all others but the owner, which has all."""
    ranks_HR = holdings.ranks_HR
    num_copies = ranks_HR.shape[1]
    shape = (*ranks_HR.shape, num_copies)
    sources_HRR = np.broadcast_to(ranks_HR[:, :, None], shape)
    targets_HRR = np.broadcast_to(ranks_HR[:, None, :], shape)
    to_owner_HRR = targets_HRR == holdings.owners_HR[:, :1, None]
    boxes_HRR6 = np.repeat(_slices(holdings.boxes_H6, num_copies)[:, :, None], num_copies, axis=2)
    return sources_HRR, np.where(to_owner_HRR, sources_HRR, targets_HRR), boxes_HRR6


_LEGS: dict[Leg, Callable[[Plan, Job, _Holdings], _Sent]] = {
    "gather": _gather,
    "scatter": _scatter,
    "share": _share,
}


def _nearest(plan: Plan, holdings: _Holdings) -> Ints:
    """Return the copy that each fragment is taken from: the owner's own, else one of its node.

    Of several as near, the one of the copy that the owner has a part of, then the next ones; so
    owners of different copies burden different holders.
    """
    ranks_HR, owners_H1 = holdings.ranks_HR, holdings.owners_HR[:, :1]
    num_copies = ranks_HR.shape[1]
    is_owner_HR = ranks_HR == owners_H1
    copies = np.full(holdings.places.max() + 1, -1)
    np.maximum.at(
        copies, holdings.places, np.where(is_owner_HR.any(axis=1), is_owner_HR.argmax(axis=1), -1)
    )
    copies_H = copies[holdings.places]
    copies_H = np.where(copies_H < 0, owners_H1[:, 0] % num_copies, copies_H)
    is_far_HR = node_of(ranks_HR, plan.cluster) != node_of(owners_H1, plan.cluster)
    turn_HR = (np.arange(num_copies) - copies_H[:, None]) % num_copies
    nearest: Ints = np.where(is_owner_HR, -1, is_far_HR * num_copies + turn_HR).argmin(axis=1)
    return nearest


def _repeated(boxes_H6: Ints, num_copies: int) -> Ints:
    return np.repeat(boxes_H6[:, None], num_copies, axis=1)


def _slices(boxes_H6: Ints, num_copies: int) -> Ints:
    """Cut each box into as many as there are copies, along the longer of its sides."""
    boxes_HR6 = _repeated(boxes_H6, num_copies)
    sizes_H3 = boxes_H6[:, 1::2] - boxes_H6[:, ::2]
    for first, is_cut_H in (
        (2, sizes_H3[:, 1] >= sizes_H3[:, 2]),
        (4, sizes_H3[:, 1] < sizes_H3[:, 2]),
    ):
        ends = (
            boxes_H6[:, first, None]
            + ((boxes_H6[:, first + 1] - boxes_H6[:, first])[:, None] * np.arange(num_copies + 1))
            // num_copies
        )
        boxes_HR6[is_cut_H, :, first] = ends[is_cut_H, :-1]
        boxes_HR6[is_cut_H, :, first + 1] = ends[is_cut_H, 1:]
    return boxes_HR6


def _transfers(moves: Moves, mine: NDArray[np.bool_], *, peers: Ints) -> tuple[Transfer, ...]:
    units, peers, boxes = moves.units[mine], peers[mine], moves.boxes[mine]
    order = np.lexsort((units, peers))
    return tuple(
        Transfer(peer=int(peers[at]), unit=int(units[at]), box=row_box(boxes[at])) for at in order
    )
