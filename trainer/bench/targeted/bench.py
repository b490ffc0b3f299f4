"""Measure whether a hint at the faulty turn takes away more errors than the reward alone.

All arms of a world start from one policy, see the same prompts, and play equally many episodes.
"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from pipeline.task.claims import Report
from trainer.bench.targeted.arms import ARMS, WORLDS, RunConfig, WorldName
from trainer.bench.targeted.claims import COLUMNS, claims, real_claims, rows, start_claims
from trainer.bench.targeted.jobs import do_all
from trainer.bench.targeted.plot import draw
from trainer.bench.targeted.real import RealConfig
from trainer.bench.targeted.sft import SftConfig
from trainer.bench.targeted.work import Job, Real, Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run."""

    worlds: dict[WorldName, SftConfig]
    first_seed: int = 0
    # How many seeds each arm has, from the first on. With six, the median of all that there could
    # be lies between the least and the most with a probability of 97 %.
    num_seeds: dict[WorldName, dict[str, int]]
    run: RunConfig
    # None leaves the real model out.
    real: RealConfig | None


FULL = Plan(
    worlds=WORLDS,
    num_seeds={
        "habits": {
            "rl": 6,
            "penalty": 6,
            "negative": 6,
            "kl": 6,
            "kl_frozen": 6,
            "both": 6,
            "kl_live": 3,
            "kl_other": 3,
            "kl_all": 3,
        },
        "far": {"rl": 3, "negative": 3, "kl": 3, "both": 3},
    },
    run=RunConfig(),
    real=RealConfig(),
)

# The same code, on policies that have learnt next to nothing: its figures say nothing.
_UNTAUGHT = {"max_steps": 5, "check_every": 4, "num_checked": 8, "num_episodes": 4}
_ANY_GAP = {"least_error": 0.0, "most_error": 1.0, "most_hinted_error": 1.0}
QUICK = Plan(
    worlds={
        world: config.model_copy(update=_UNTAUGHT | _ANY_GAP) for world, config in WORLDS.items()
    },
    num_seeds={world: dict.fromkeys(arms, 1) for world, arms in FULL.num_seeds.items()},
    run=RunConfig(steps=6, prompts=2, group=4, final_episodes=8),
    real=None,
)


def measure(folder: Path, *, quick: bool = False) -> Report:
    """Run all arms from all their seeds; what the folder holds of an earlier run is used again.

    The plot is written to `targeted.png` in the folder.
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
    draw(results, folder / "targeted.png")
    found = [
        *start_claims(starts["habits"].play(folder)),
        *claims(results),
        *(claim for real in reals for claim in real_claims(real.result(folder))),
    ]
    return Report(bench="targeted", claims=tuple(found), columns=COLUMNS, rows=rows(results))
