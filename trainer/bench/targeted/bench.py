"""Measure whether a hint at the faulty turn takes away more errors than the reward alone.

All arms of a world start from one policy, see the same prompts, and play equally many episodes.
"""

from pathlib import Path

from rich.console import Console

from pipeline.task.claims import Report
from trainer.bench.targeted.arms import ARMS
from trainer.bench.targeted.claims import COLUMNS, claims, real_claims, rows, start_claims
from trainer.bench.targeted.jobs import do_all
from trainer.bench.targeted.page import page
from trainer.bench.targeted.plan import FULL, QUICK, Plan
from trainer.bench.targeted.plot import draw
from trainer.bench.targeted.work import Job, Real, Start


def measure(folder: Path, *, quick: bool = False) -> Report:
    """Run all arms from all their seeds; what the folder holds of an earlier run is used again.

    The plot is written to `targeted.png` in the folder, and all that was done and came of it to
    `targeted.md`.

    Raises:
        NotMeasuredError: the policies came out without the gap, or a worker was killed.
    """
    return run(QUICK if quick else FULL, folder)


def run(plan: Plan, folder: Path) -> Report:
    """Run a plan in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = {world: Start(world=world, config=plan.worlds[world]) for world in plan.num_seeds}
    jobs = [
        Job(start=starts[world], name=name, arm=ARMS[name], config=plan.run, seed=seed)
        for world, arms in plan.num_seeds.items()
        for name, num in arms.items()
        for seed in range(plan.first_seed, plan.first_seed + num)
    ]
    reals = [Real(config=plan.real)] if plan.real else []
    say = Console(stderr=True)
    do_all(starts.values(), folder, say=say)
    do_all([*reals, *jobs], folder, say=say)
    results = {
        (world, name): [
            job.result(folder) for job in jobs if (job.start.world, job.name) == (world, name)
        ]
        for world, arms in plan.num_seeds.items()
        for name in arms
    }
    found = [
        *start_claims(starts["habits"].play(folder)),
        *claims(results),
        *(claim for real in reals for claim in real_claims(real.result(folder))),
    ]
    report = Report(bench="targeted", claims=tuple(found), columns=COLUMNS, rows=rows(results))
    draw(results, folder / "targeted.png")
    (folder / "targeted.md").write_text(page(plan, report))
    return report
