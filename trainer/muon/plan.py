"""Plan an optimizer step: who orthogonalizes which matrix, when, and what moves for it.

A plan is data. Every rank makes it for itself from the same layouts, compares its digest with the
others', and carries it out; the simulator runs the same record. With a plan, each rank goes
through `plan.steps` in order, and does of each step of a job what concerns it:

1. `pack`: for each fragment of `held(plan, job, rank=…)` update the momentum with the gradient,
   and write the update into a buffer in the dtype of the wire. A parameter without a gradient on
   this rank has a gradient of zeros: nothing is ever left out.
2. `gather`: start an all-to-all of what `sends(plan, job, leg="gather", rank=…)` lists and
   `receives(…)` expects. Both list by peer, so their order is that of the buffers' parts, and
   a rank with two empty lists takes part with nothing, or not at all in a group without it.
3. `orthogonalize`: wait for that; put each unit of `owned(job, rank)` together from what came and
   from the own fragment, and orthogonalize those of one shape as one batch, as they lie: the bits
   of a tall matrix are not those of its transpose.
4. `scatter`: start the all-to-all of leg "scatter" with the results. A rank that owns a unit and
   holds a part of it keeps its part; it is in no list.
5. `share`, for relayed jobs: wait for that, and start the all-to-all of leg "share", of what came
   in "scatter" or is owned. It may be in flight together with those of other jobs, and needs a
   group of its own.
6. `apply`: wait for the last leg, and step each fragment of `held(…)`.

"gather" may fill the buffers of the job that moves `depth` + 1 such jobs earlier, which its owners
are done with by then. Where the device can, 1 and 6 run beside the products and not behind them: a
rank with one huge matrix must go on packing what others wait for.

Jobs of route "local" have no legs. Steps 2, 4 and 5 start and do not wait. All ranks have the steps
in the same order, so no two ever wait for each other.

Example: a gate of 4 x 8 in two halves on ranks 0 and 1, and an up of 2 x 8 on rank 1 alone. The
gate costs more and is dealt first: rank 0 orthogonalizes it, and gets its lower half for that.

    >>> import numpy as np
    >>> from trainer.muon.cuts import Whole
    >>> from trainer.muon.layout import Replicate, Shard, lay_out
    >>> from trainer.muon.moves import receives, sends
    >>> from trainer.muon.units import Rule, sort_parameters
    >>> both, one = np.array([0, 1]), np.array([1])
    >>> layouts = {
    ...     "gate": lay_out("gate", (4, 8), mesh=both, placements=(Shard(dim=0),)),
    ...     "up": lay_out("up", (2, 8), mesh=one, placements=(Replicate(),)),
    ... }
    >>> shapes = {"gate": (4, 8), "up": (2, 8)}
    >>> units = sort_parameters(shapes, [Rule(pattern=".*", cut=Whole())]).units
    >>> plan = make_plan(layouts, units, cluster=Cluster(num_ranks=2))
    >>> [(job.shape, job.route, job.owners) for job in plan.jobs]
    [((2, 8), 'local', ((1,),)), ((4, 8), 'direct', ((0,),))]
    >>> [(it.peer, it.box.rows) for it in sends(plan, plan.jobs[1], leg="gather", rank=1)]
    [(0, (2, 4))]
    >>> [(it.peer, it.box.rows) for it in receives(plan, plan.jobs[1], leg="scatter", rank=1)]
    [(0, (2, 4))]
    >>> " ".join(f"{step.kind}-{step.job}" for step in plan.steps[:6])
    'pack-1 gather-1 pack-0 orthogonalize-0 orthogonalize-1 apply-0'
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from trainer.muon.costs import Cluster
from trainer.muon.fragments import find_fragments
from trainer.muon.jobs import LEGS, Kind, Plan, PlanOptions, Route, Step
from trainer.muon.layout import Layout
from trainer.muon.owners import deal, units_ns
from trainer.muon.schedule import Timed, put_in_jobs
from trainer.muon.traffic import leg_ns, leg_traffic
from trainer.muon.units import Unit

# In which order steps are done that could start at one time.
_STAGES: dict[Kind, int] = {
    "pack": 0,
    "gather": 1,
    "orthogonalize": 2,
    "scatter": 3,
    "share": 4,
    "apply": 5,
}
# What of a job is done before others.
_AHEAD: dict[Route, tuple[Kind, ...]] = {
    "local": ("pack",),
    "direct": ("pack", "gather"),
    "relayed": ("pack", "gather"),
}


def make_plan(
    layouts: Mapping[str, Layout],
    units: Iterable[Unit],
    *,
    cluster: Cluster,
    options: PlanOptions | None = None,
) -> Plan:
    """Plan the step of some units, such as `membership.units`; the same on each rank.

    Raises:
        ValueError: there is no unit, one has no layout, or a layout names a rank that the cluster
            has not.
    """
    options = options or PlanOptions()
    units = tuple(sorted(units))
    if not units:
        raise ValueError("there is no unit to plan, expected one at least")
    patterns, fragments = find_fragments(units, layouts)
    _check_ranks(layouts, num_ranks=cluster.num_ranks)
    owners = deal(units, patterns, fragments, cluster=cluster, options=options)
    timed = put_in_jobs(
        units,
        [fragments[pattern] for pattern in patterns],
        owners=owners,
        costs=units_ns(units, cluster=cluster, options=options),
        options=options,
        network_bytes_s=cluster.network_bytes_s,
    )
    plan = Plan(
        cluster=cluster,
        options=options,
        units=units,
        patterns=patterns,
        fragments=fragments,
        jobs=tuple(it.job for it in timed),
        steps=(),
    )
    return replace(plan, steps=tuple(_steps(plan, timed)))


def digest(plan: Plan) -> str:
    """Return what only an equal plan has too, for ranks to compare."""
    found = sha256()
    found.update(f"{plan.cluster.model_dump_json()} {plan.options.model_dump_json()}".encode())
    for unit, pattern in zip(plan.units, plan.patterns, strict=True):
        found.update(f"{unit.parameter} {unit.box.experts} {unit.box.rows} ".encode())
        found.update(f"{unit.box.cols} {pattern}\n".encode())
    for fragments in plan.fragments:
        found.update(f"{fragments.boxes.tolist()} {fragments.ranks.tolist()}\n".encode())
    for job in plan.jobs:
        found.update(f"{job}\n".encode())
    found.update(f"{plan.steps}".encode())
    return found.hexdigest()


def num_orthogonalized(plan: Plan) -> int:
    """Return how many matrices all ranks together orthogonalize; `plan.units` exist."""
    return sum(len(owners) for job in plan.jobs for owners in job.owners)


def redone(plan: Plan) -> tuple[int, ...]:
    """Return the units that each of their copies orthogonalizes."""
    return tuple(
        unit
        for job in plan.jobs
        for unit, owners in zip(job.units, job.owners, strict=True)
        if len(owners) > 1
    )


PLAN_COLUMNS = ("shape", "route", "copies", "units", "done", "jobs", "owners", "weights")


def plan_table(plan: Plan) -> list[tuple[object, ...]]:
    """Return rows for people, under `PLAN_COLUMNS`: what is done in which way, and by how many.

    `done` is how many matrices are orthogonalized for the units, all copies together.
    """
    sums: dict[tuple[object, ...], list[int]] = {}
    owners: dict[tuple[object, ...], set[int]] = {}
    for job in plan.jobs:
        copies = plan.fragments[plan.patterns[job.units[0]]].ranks.shape[1]
        key = (f"{job.shape[0]} x {job.shape[1]}", job.route, copies)
        counts = sums.setdefault(key, [0, 0, 0, 0])
        done = sum(len(it) for it in job.owners)
        weights = sum(plan.units[unit].numel for unit in job.units)
        for at, count in enumerate((len(job.units), done, 1, weights)):
            counts[at] += count
        owners.setdefault(key, set()).update(*job.owners)
    return [
        (*key, units, done, jobs, len(owners[key]), weights)
        for key, (units, done, jobs, weights) in sums.items()
    ]


def _check_ranks(layouts: Mapping[str, Layout], *, num_ranks: int) -> None:
    seen: set[int] = set()
    for name, layout in layouts.items():
        if id(layout.pieces) in seen:
            continue
        seen.add(id(layout.pieces))
        highest = max(rank for piece in layout.pieces for rank in piece.ranks)
        if highest >= num_ranks:
            raise ValueError(f"{name}: is on rank {highest}, expected one below {num_ranks}")


def _steps(plan: Plan, timed: Sequence[Timed]) -> Iterator[Step]:
    """Yield the steps by when they would start if nobody waited; a few jobs are gathered ahead."""
    times: list[tuple[int, int, int, int, Kind]] = []
    moved: list[int] = []
    # Until when what relayed jobs send back keeps its queue.
    taken = 0
    for number, it in enumerate(timed):
        # The job that this one is packed before: when it starts, buffers for this one are free.
        before = number
        if it.job.route != "local":
            moved.append(number)
            before = moved[-1 - plan.options.depth] if len(moved) > plan.options.depth else -1
        early = timed[before].start_ns if before >= 0 else 0
        ahead = _AHEAD[it.job.route]
        times.extend((early, before, _STAGES[kind], number, kind) for kind in ahead)
        starts = _starts(plan, it, not_before=taken)
        if it.job.route == "relayed":
            taken = starts["apply"]
        times.extend((start, number, _STAGES[kind], number, kind) for kind, start in starts.items())
    yield from (Step(kind=it[-1], job=it[-2]) for it in sorted(times))


def _starts(plan: Plan, it: Timed, *, not_before: int) -> dict[Kind, int]:
    """Return when the steps of a job start, from "orthogonalize" on."""
    starts: dict[Kind, int] = {"orthogonalize": it.start_ns}
    time = max(it.end_ns, not_before) if it.job.route == "relayed" else it.end_ns
    for leg in LEGS[it.job.route][1:]:
        starts[leg] = time
        time += int(leg_ns(leg_traffic(plan, it.job, leg=leg), plan.cluster).max())
    starts["apply"] = time
    return starts
