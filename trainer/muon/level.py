"""Take units from ranks with too much to do, where that pays for their way.

Letters of shapes: N ranks, F fragments of a unit, R copies.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainer.muon.costs import Cluster, Link, latency_ns, link_ns, node_of
from trainer.muon.fragments import numel
from trainer.muon.jobs import Fragments, Ints, Owners, PlanOptions


def level(owners: list[Owners], *, costs: Sequence[int], ways: "Ways", busy_N: Ints) -> None:
    """Move units, one by one, from the rank with the most to do, until none of its units can go.

    A unit goes to a rank that would be done with it sooner, its way there and back included.
    Changes `owners` and `busy_N`.
    """
    stacks: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for unit, whose in enumerate(owners):
        # What each copy does for itself stays there.
        if len(whose) == 1:
            stacks[whose[0]][costs[unit]].append(unit)
    is_full_N = np.zeros(len(busy_N), dtype=bool)
    while not is_full_N.all():
        busiest = int(np.where(is_full_N, -1, busy_N).argmax())
        offers = _offers(stacks[busiest], busy_N, ways)
        best = min(offers, default=None, key=lambda offer: (offer.done_ns, offer.cost))
        if best is None or best.done_ns >= busy_N[busiest]:
            is_full_N[busiest] = True
            continue
        unit = stacks[busiest][best.cost].pop()
        stacks[best.taker][best.cost].append(unit)
        owners[unit] = (best.taker,)
        busy_N[busiest] -= best.cost
        busy_N[best.taker] += best.cost


class Ways:
    """What it costs each rank to get a unit that it does not hold, and to send it back."""

    def __init__(
        self,
        patterns: Sequence[int],
        fragments: Sequence[Fragments],
        *,
        cluster: Cluster,
        options: PlanOptions,
    ) -> None:
        self._patterns, self._fragments = patterns, fragments
        self._cluster, self._options = cluster, options
        self._found: dict[int, Ints] = {}

    def of(self, unit: int) -> Ints:
        """Return the way of a unit for each rank, [N]; for those that hold a part of it nothing."""
        pattern = self._patterns[unit]
        if pattern not in self._found:
            self._found[pattern] = self._way_ns(self._fragments[pattern])
        return self._found[pattern]

    def _way_ns(self, fragments: Fragments) -> Ints:
        num_bytes = numel(fragments.boxes).sum() * self._options.wire_bytes
        nodes_N = node_of(np.arange(self._cluster.num_ranks), self._cluster)
        nodes_FR = node_of(fragments.ranks, self._cluster)
        is_near_N = np.all([np.isin(nodes_N, nodes_R) for nodes_R in nodes_FR], axis=0)
        way_N = np.where(
            is_near_N,
            self._there_and_back_ns("nvlink", num_bytes),
            self._there_and_back_ns("network", num_bytes),
        )
        way_N[fragments.ranks] = 0
        return way_N

    def _there_and_back_ns(self, link: Link, num_bytes: Ints) -> int:
        started = latency_ns(np.ones((), dtype=np.int64), self._cluster)
        return 2 * int(link_ns(num_bytes, link, self._cluster) + started)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """A rank that would take one of the units of a cost."""

    # When it would be done with it.
    done_ns: int
    cost: int
    taker: int


def _offers(stacks: Mapping[int, Sequence[int]], busy_N: Ints, ways: Ways) -> Iterator[_Offer]:
    for cost, units in stacks.items():
        if units:
            done_N = busy_N + ways.of(units[-1]) + cost
            taker = int(done_N.argmin())
            yield _Offer(done_ns=int(done_N[taker]), cost=cost, taker=taker)
