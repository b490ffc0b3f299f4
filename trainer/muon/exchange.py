"""Carry the legs of a plan's jobs over torch.distributed: one uneven all-to-all each.

Letters of shapes: N numbers that this rank sends, or gets, in a leg.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.muon.jobs import LEGS, Job, Leg, Plan, Transfer
from trainer.muon.moves import moves_of, receives, sends

# Groups of ranks that exchange among themselves; with more, each leg is one of the whole world.
MAX_GROUPS = 16


class ExchangeError(RuntimeError):
    """Another rank did not take part in time; one line that names the step, job and leg."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What this rank does in one leg of a job."""

    sends: tuple[Transfer, ...]
    receives: tuple[Transfer, ...]
    # Who takes part, ascending.
    ranks: tuple[int, ...]
    group: dist.ProcessGroup

    def sizes(self, transfers: tuple[Transfer, ...]) -> list[int]:
        """Return how many numbers go to, or come from, each rank of the group."""
        counts: Counter[int] = Counter()
        for it in transfers:
            counts[it.peer] += it.box.numel
        return [counts[rank] for rank in self.ranks]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flight:
    """What is on its way; the tensors stay where they are until it has landed."""

    way: Way
    work: dist.Work
    sent_N: Tensor
    coming_N: Tensor

    def land(self) -> Iterator[tuple[Transfer, Tensor]]:
        """Wait; yield what came, each with the shape [R, C] of its box.

        Raises:
            RuntimeError: it did not come in time.
        """
        self.work.wait()
        numels = [it.box.numel for it in self.way.receives]
        for it, part in zip(self.way.receives, self.coming_N.split(numels), strict=True):
            (a, b), (c, d) = it.box.rows, it.box.cols
            yield it, part.view(b - a, d - c)


def start(way: Way, take: Callable[[Transfer], Tensor], *, dtype: torch.dtype) -> Flight:
    """Start one leg: `take` gives what is sent of each transfer."""
    device = torch.device("cuda" if dist.get_backend(way.group) == "nccl" else "cpu")
    parts = [take(it).to(dtype).flatten() for it in way.sends]
    sent_N = torch.cat(parts) if parts else torch.empty(0, dtype=dtype, device=device)
    coming = way.sizes(way.receives)
    coming_N = torch.empty(sum(coming), dtype=dtype, device=sent_N.device)
    work = dist.all_to_all_single(
        coming_N, sent_N, coming, way.sizes(way.sends), group=way.group, async_op=True
    )
    return Flight(way=way, work=work, sent_N=sent_N, coming_N=coming_N)


def open_ways(plan: Plan) -> dict[tuple[int, Leg], Way]:
    """Form the groups that a plan's legs need and use each once; return this rank's legs.

    Every rank must call it. Legs of kind "share" have groups of their own: they are in flight
    beside others.
    """
    rank = dist.get_rank()
    legs = [(number, leg) for number, job in enumerate(plan.jobs) for leg in LEGS[job.route]]
    taking = {number: _taking_part(plan, plan.jobs[number]) for number, _ in legs}
    if len({*taking.values()}) > MAX_GROUPS:
        taking = dict.fromkeys(taking, tuple(range(dist.get_world_size())))
    groups: dict[tuple[tuple[int, ...], bool], dist.ProcessGroup] = {}
    for number, leg in legs:
        key = (taking[number], leg == "share")
        if key not in groups:
            groups[key] = dist.new_group(list(taking[number]))
            if rank in taking[number]:
                _warm(groups[key], num_ranks=len(taking[number]))
    return {
        (number, leg): Way(
            sends=sends(plan, plan.jobs[number], leg=leg, rank=rank),
            receives=receives(plan, plan.jobs[number], leg=leg, rank=rank),
            ranks=taking[number],
            group=groups[taking[number], leg == "share"],
        )
        for number, leg in legs
        if rank in taking[number]
    }


def _taking_part(plan: Plan, job: Job) -> tuple[int, ...]:
    moves = [moves_of(plan, job, leg=leg) for leg in LEGS[job.route]]
    both = chain.from_iterable((it.sources.tolist(), it.targets.tolist()) for it in moves)
    return tuple(sorted({*chain.from_iterable(both)}))


def _warm(group: dist.ProcessGroup, *, num_ranks: int) -> None:
    """Connect all peers: the first large exchange may hang where some are not (prime-rl 3490)."""
    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
    one_each = torch.ones(num_ranks, device=device)
    dist.all_to_all_single(torch.empty_like(one_each), one_each, group=group)
