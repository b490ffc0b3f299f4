"""Put units into jobs, and jobs in an order in which owners work and wait together.

The units of an owner, one after another, are its time line; a job has the units of one kind that
start in one window of all time lines. So owners with a large matrix, who get fewer others, are not
behind in the jobs that they share. Letters of shapes: K turns, each of one owner at one unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.muon.jobs import Fragments, Ints, Job, Owners, PlanOptions, Route
from trainer.muon.units import Unit

# How finely a turn's place among the others of its owner is told.
_FINE = 2**20
# To relay to a single other holder would be to send it the same in two parts.
_LEAST_COPIES = 3


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Alike:
    """What the units of a job have in common; in the order in which an owner does them."""

    # Relayed ones first: they have the longest way back.
    is_direct: bool
    # Elements of a unit, negative: larger ones first.
    less_numel: int
    shape: tuple[int, int]
    num_copies: int
    num_fragments: int
    is_redone: bool
    # Done in between the others, while these are on their way.
    is_local: bool

    @property
    def route(self) -> Route:
        """How results come back."""
        if self.is_local:
            return "local"
        return "direct" if self.is_direct else "relayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A job, with when its first owner starts and its last one ends if nobody ever waits."""

    start_ns: int
    end_ns: int
    job: Job


def put_in_jobs(
    units: Sequence[Unit],
    held: Sequence[Fragments],
    *,
    owners: Sequence[Owners],
    costs: Sequence[int],
    options: PlanOptions,
    network_bytes_s: float,
) -> list[Timed]:
    """Return the jobs in order; `held`, `owners` and `costs` have one entry a unit."""
    kinds = [
        _kind(unit, fragments, whose, options=options, bytes_s=network_bytes_s)
        for unit, fragments, whose in zip(units, held, owners, strict=True)
    ]
    by_number = sorted(set(kinds))
    numbers = {kind: number for number, kind in enumerate(by_number)}
    turns = _Turns.of(owners, costs=costs, kinds=[numbers[kind] for kind in kinds])
    starts_K = _starts(turns, is_local=np.array([kind.is_local for kind in by_number]))
    caps = np.array([_cap(kind, options) for kind in by_number])
    relayed = [_relayed_cap(kind, options) for kind in by_number]
    window_ns = _window_ns(turns, caps)
    keys = _keys(turns, starts_K, caps=caps, relayed=np.array(relayed), window_ns=window_ns)
    timed = []
    found, jobs_of_units = np.unique(keys, axis=0, return_inverse=True)
    members = np.split(
        np.argsort(jobs_of_units, kind="stable"), np.cumsum(np.bincount(jobs_of_units))[:-1]
    )
    first, last = _spans(turns, starts_K, jobs=jobs_of_units[turns.units])
    for number, (window, kind, _) in enumerate(found):
        start = max(int(first[number]), int(window) * window_ns)
        timed.append(
            Timed(
                start_ns=start,
                end_ns=max(int(last[number]), start),
                job=Job(
                    shape=by_number[kind].shape,
                    route=by_number[kind].route,
                    units=tuple(members[number].tolist()),
                    owners=tuple(owners[unit] for unit in members[number]),
                ),
            )
        )
    return sorted(timed, key=lambda it: (it.start_ns, it.job.shape, it.job.units))


def _kind(
    unit: Unit, fragments: Fragments, owners: Owners, *, options: PlanOptions, bytes_s: float
) -> Alike:
    num_fragments, num_copies = fragments.ranks.shape
    is_redone = len(owners) > 1
    sent_s = (num_copies - 1) * unit.numel * options.wire_bytes / bytes_s
    rows, cols = unit.shape
    return Alike(
        is_direct=is_redone or num_copies < _LEAST_COPIES or sent_s < options.relay_s,
        less_numel=-unit.numel,
        shape=(min(rows, cols), max(rows, cols)),
        num_copies=num_copies,
        num_fragments=num_fragments,
        is_redone=is_redone,
        is_local=fragments.ranks.shape == (1, len(owners))
        and fragments.ranks[0].tolist() == list(owners),
    )


def _cap(kind: Alike, options: PlanOptions) -> int:
    """Return how many units of a kind an owner has in one job."""
    return max(1, options.job_bytes // (-kind.less_numel * options.wire_bytes))


def _relayed_cap(kind: Alike, options: PlanOptions) -> int:
    """Return how many units of a kind all owners have in one job: what each holder gets counts.

    Else the results of a few owners to all would keep the network from everything else.
    """
    if kind.route != "relayed":
        return np.iinfo(np.int64).max
    got_bytes = -kind.less_numel * options.wire_bytes // kind.num_fragments
    return max(1, options.relay_bytes // max(1, got_bytes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Turns:
    """All owners at all their units; all of shape [K]."""

    units: Ints
    owners: Ints
    costs: Ints
    kinds: Ints

    @classmethod
    def of(
        cls, owners: Sequence[Owners], *, costs: Sequence[int], kinds: Sequence[int]
    ) -> "_Turns":
        units_K = np.repeat(np.arange(len(owners)), [len(it) for it in owners])
        return cls(
            units=units_K,
            owners=np.concatenate([np.array(it, dtype=np.int64) for it in owners]),
            costs=np.array(costs, dtype=np.int64)[units_K],
            kinds=np.array(kinds, dtype=np.int64)[units_K],
        )


def _starts(turns: _Turns, *, is_local: NDArray[np.bool_]) -> Ints:
    """Return when each turn starts on its owner's time line.

    What is local is dealt evenly among the rest.
    """
    is_local_K = is_local[turns.kinds]
    both_K = turns.owners * 2 + is_local_K
    order = np.lexsort((turns.units, turns.kinds, both_K))
    before_K = _sums_before(turns.costs, groups=both_K, order=order)
    totals = np.zeros(both_K.max() + 1, dtype=np.int64)
    np.add.at(totals, both_K, turns.costs)
    places_K = before_K // np.maximum(1, totals // _FINE)[both_K]
    order = np.lexsort((turns.units, turns.kinds, ~is_local_K, places_K, turns.owners))
    return _sums_before(turns.costs, groups=turns.owners, order=order)


def _sums_before(values_K: Ints, *, groups: Ints, order: Ints) -> Ints:
    """Return for each the sum of those of its group that stand before it in an order by groups."""
    ordered_K = values_K[order]
    before_K = np.cumsum(ordered_K) - ordered_K
    is_first_K = np.diff(groups[order], prepend=-1) != 0
    bases_K = before_K[is_first_K][np.cumsum(is_first_K) - 1]
    sums_K = np.empty_like(values_K)
    sums_K[order] = before_K - bases_K
    return sums_K


def _window_ns(turns: _Turns, caps: Ints) -> int:
    """Return how long a job of the kind that takes longest in all is at most."""
    totals = np.bincount(turns.kinds, weights=turns.costs)
    longest = int(totals.argmax())
    return int(turns.costs[turns.kinds == longest].max() * caps[longest])


def _keys(turns: _Turns, starts_K: Ints, *, caps: Ints, relayed: Ints, window_ns: int) -> Ints:
    """Return for each unit its window, its kind, and its part of the two where they are large."""
    num_units = int(turns.units.max()) + 1
    sums, counts = np.zeros(num_units, dtype=np.int64), np.bincount(turns.units)
    np.add.at(sums, turns.units, starts_K)
    windows = sums // counts // window_ns
    kinds = np.zeros(num_units, dtype=np.int64)
    kinds[turns.units] = turns.kinds
    windows_K = windows[turns.units]
    order = np.lexsort((turns.units, starts_K, turns.kinds, windows_K, turns.owners))
    groups_K = (turns.owners * (windows.max() + 1) + windows_K) * len(caps) + turns.kinds
    slots_K = _sums_before(np.ones_like(starts_K), groups=groups_K, order=order)
    parts = np.zeros(num_units, dtype=np.int64)
    np.maximum.at(parts, turns.units, slots_K // caps[turns.kinds])
    groups = windows * len(caps) + kinds
    order = np.argsort(groups, kind="stable")
    parts += _sums_before(np.ones_like(groups), groups=groups, order=order) // relayed[kinds]
    return np.stack([windows, kinds, parts], axis=1)


def _spans(turns: _Turns, starts_K: Ints, *, jobs: Ints) -> tuple[Ints, Ints]:
    """Return when the first turn of each job starts and its last one ends."""
    num_jobs = int(jobs.max()) + 1
    first = np.full(num_jobs, np.iinfo(np.int64).max)
    last = np.zeros(num_jobs, dtype=np.int64)
    np.minimum.at(first, jobs, starts_K)
    np.maximum.at(last, jobs, starts_K + turns.costs)
    return first, last
