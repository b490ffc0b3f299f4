"""Carry out a plan literally: each rank is a memory of arrays, and what is sent is copied."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainer.muon.costs import Link
from trainer.muon.jobs import Job, Leg, Plan, Step
from trainer.muon.layout import Layout
from trainer.muon.moves import held, owned, receives, sends
from trainer.muon.units import Box

Array = NDArray[np.int64]


def part(box: Box) -> tuple[slice, slice, slice]:
    return slice(*box.experts), slice(*box.rows), slice(*box.cols)


def within(box: Box, of: Box) -> tuple[slice, slice, slice]:
    pairs = ((box.experts, of.experts), (box.rows, of.rows), (box.cols, of.cols))
    a, b, c = (slice(mine[0] - base[0], mine[1] - base[0]) for mine, base in pairs)
    return a, b, c


@dataclass
class Partial:
    """What has come of a box so far."""

    box: Box
    values: Array
    is_there: NDArray[np.bool_]

    @classmethod
    def of(cls, box: Box) -> "Partial":
        shape = tuple(b - a for a, b in (box.experts, box.rows, box.cols))
        return cls(box, np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool))

    def put(self, box: Box, values: Array) -> None:
        at = within(box, self.box)
        assert not self.is_there[at].any(), "what is there is sent once more"
        self.values[at], self.is_there[at] = values, True

    def get(self, box: Box) -> Array:
        at = within(box, self.box)
        assert self.is_there[at].all(), "what has not come is sent or used"
        return self.values[at].copy()


@dataclass
class Machine:
    """All ranks, and what went over the links between them."""

    plan: Plan
    work: Callable[[Array], Array]
    # Of each rank and parameter: what it holds.
    memories: dict[int, dict[str, Partial]]
    sent: dict[Link, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    received: dict[Link, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    num_done: Counter[int] = field(default_factory=Counter)
    # Of each rank and unit: fragments that were packed, whole units, fragments that came back.
    packed: dict[tuple[int, int], Partial] = field(default_factory=dict)
    whole: dict[tuple[int, int], Partial] = field(default_factory=dict)
    back: dict[tuple[int, int], Partial] = field(default_factory=dict)

    @classmethod
    def holding(
        cls,
        plan: Plan,
        values: Mapping[str, Array],
        layouts: Mapping[str, Layout],
        work: Callable[[Array], Array],
    ) -> "Machine":
        memories: dict[int, dict[str, Partial]] = defaultdict(dict)
        for name, layout in layouts.items():
            for piece in layout.pieces:
                for rank in piece.ranks:
                    memories[rank][name] = Partial.of(piece.box)
                    memories[rank][name].put(piece.box, values[name][part(piece.box)])
        return cls(plan, work, memories)

    def run(self) -> None:
        for step in self.plan.steps:
            self.do(step)

    def do(self, step: Step) -> None:
        job = self.plan.jobs[step.job]
        ranks = range(self.plan.cluster.num_ranks)
        match step.kind:
            case "pack":
                for rank in ranks:
                    self.pack(job, rank)
            case "orthogonalize":
                for rank in ranks:
                    self.multiply(job, rank)
            case "apply":
                for rank in ranks:
                    self.apply(job, rank)
            case leg:
                self.exchange(job, leg)

    def pack(self, job: Job, rank: int) -> None:
        for unit, box in held(self.plan, job, rank=rank):
            self.packed[rank, unit] = Partial.of(box)
            memory = self.memories[rank][self.plan.units[unit].parameter]
            self.packed[rank, unit].put(box, memory.get(box))
            self.back[rank, unit] = Partial.of(box)
        for unit in owned(job, rank):
            self.whole[rank, unit] = Partial.of(self.plan.units[unit].box)

    def multiply(self, job: Job, rank: int) -> None:
        for unit in owned(job, rank):
            whole = self.whole[rank, unit]
            if mine := self.packed.get((rank, unit)):
                whole.put(mine.box, mine.values)
            result = self.work(whole.get(whole.box)[0])
            whole.values = result[None]
            self.num_done[unit] += 1
            if mine:
                self.back[rank, unit].put(mine.box, whole.get(mine.box))

    def exchange(self, job: Job, leg: Leg) -> None:
        wires: dict[tuple[int, int], list[Array]] = defaultdict(list)
        for rank in range(self.plan.cluster.num_ranks):
            for it in sends(self.plan, job, leg=leg, rank=rank):
                wires[rank, it.peer].append(self.source(leg, rank, it.unit).get(it.box))
                self.count(rank, it.peer, it.box.numel)
        for rank in range(self.plan.cluster.num_ranks):
            for it in receives(self.plan, job, leg=leg, rank=rank):
                target = (self.whole if leg == "gather" else self.back)[rank, it.unit]
                target.put(it.box, wires[it.peer, rank].pop(0))
        assert not any(wires.values()), "something that was sent was never taken"

    def source(self, leg: Leg, rank: int, unit: int) -> Partial:
        sources = {"gather": self.packed, "scatter": self.whole, "share": self.back}
        return sources[leg][rank, unit]

    def count(self, source: int, target: int, numel: int) -> None:
        size = self.plan.cluster.ranks_per_node
        link: Link = "nvlink" if source // size == target // size else "network"
        self.sent[link][source] += numel * self.plan.options.wire_bytes
        self.received[link][target] += numel * self.plan.options.wire_bytes

    def apply(self, job: Job, rank: int) -> None:
        for unit, box in held(self.plan, job, rank=rank):
            memory = self.memories[rank][self.plan.units[unit].parameter]
            memory.values[within(box, memory.box)] = self.back[rank, unit].get(box)
