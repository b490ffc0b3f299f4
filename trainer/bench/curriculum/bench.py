"""Compare practising what teaches most with practising everything in turn."""

import math
from pathlib import Path
from statistics import mean, median

from pipeline.task.claims import Report, at_least, at_most
from trainer.bench.curriculum.simulate import Moment, SimulationConfig, simulate
from trainer.curriculum import GOOD_RATES, CurriculumConfig

NUM_SEEDS, QUICK_SEEDS = 20, 2
QUICK = SimulationConfig(prompts=60, goal=2.0)
# Steps in which a sampler that knows nothing looks around.
WARM_UP = 20
COLUMNS = (
    "prompts chosen",
    "seed",
    "rollouts to the goal",
    "mean rate of picks",
    "picks in 0.3 to 0.7",
    "skill at the end",
)


def measure(folder: Path, *, quick: bool = False) -> Report:
    """Simulate both from the same seeds; nothing is put in the folder."""
    del folder
    config = QUICK if quick else SimulationConfig()
    seeds = range(QUICK_SEEDS if quick else NUM_SEEDS)
    runs = {
        kind: [list(simulate(CurriculumConfig(kind=kind), config, seed=seed)) for seed in seeds]
        for kind in ("uniform", "learnability")
    }
    num = {kind: [_rollouts(run, config) for run in found] for kind, found in runs.items()}
    fewer = [
        plain / chosen for plain, chosen in zip(num["uniform"], num["learnability"], strict=True)
    ]
    chosen = [_settled(run) for run in runs["learnability"]]
    means = [it for run in chosen for it in _by_doubling(run)]
    low, high = GOOD_RATES
    return Report(
        bench="curriculum",
        claims=(
            at_least("uniform rollouts by chosen ones to the same skill, median", median(fewer), 2),
            at_least("the same, least of the seeds", min(fewer), 2),
            at_least("mean rate of the picks while the skill doubles once, least", min(means), low),
            at_most("the same, most", max(means), high),
            at_least("share of single picks between 30 % and 70 %", _good(chosen), 0.5),
        ),
        columns=COLUMNS,
        rows=tuple(
            (
                kind,
                seed,
                _rollouts(run, config),
                round(mean(mean(it.rates) for it in run), 3),
                round(_good([_settled(run)]), 3),
                round(run[-1].skill, 2),
            )
            for kind, found in runs.items()
            for seed, run in zip(seeds, found, strict=True)
        ),
    )


def _rollouts(run: list[Moment], config: SimulationConfig) -> int:
    return len(run) * config.per_step * config.group


def _settled(run: list[Moment]) -> list[Moment]:
    """Return the steps after it has looked around; the last one at least."""
    return run[WARM_UP:] or run[-1:]


def _by_doubling(run: list[Moment]) -> list[float]:
    """Return the mean rate of all picks while the skill doubled once, twice, and so on."""
    found: dict[int, list[float]] = {}
    for it in run:
        found.setdefault(int(math.log2(it.skill)), []).extend(it.rates)
    return [mean(rates) for rates in found.values()]


def _good(runs: list[list[Moment]]) -> float:
    low, high = GOOD_RATES
    rates = [rate for run in runs for it in run for rate in it.rates]
    return sum(low <= it <= high for it in rates) / len(rates)
