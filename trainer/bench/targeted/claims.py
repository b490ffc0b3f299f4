"""Turn what the arms did into claims and a table."""

from collections.abc import Callable, Mapping, Sequence
from math import comb
from statistics import median

from pipeline.task.claims import Claim, at_least, at_most
from trainer.bench.targeted.arm_run import ArmResult
from trainer.bench.targeted.arms import ARMS, WorldName
from trainer.bench.targeted.gap import Play
from trainer.bench.targeted.real import RealResult

# Results of each arm of each world, in the order of the seeds, which all arms share.
Results = Mapping[tuple[WorldName, str], Sequence[ArmResult]]

# Stands for no error at all where one divides by errors: fewer than one in all final episodes.
_LEAST_ERROR = 1e-4
# How often an interval holds the median of all seeds that there could be.
_LEVEL = 0.95

COLUMNS = (
    "world",
    "arm",
    "what pulls",
    "seeds",
    "errors/calls",
    "range",
    "fewer than rl",
    "range of fewer",
    "reward",
    "episodes with an error",
    "calls/episode",
    "teacher's error after a hint",
    "rollout CPU s",
    "rl CPU s",
    "hints CPU s",
)


def start_claims(played: Play) -> tuple[Claim, ...]:
    """Return whether the policy that the arms start from has the gap that hints can close."""
    return (
        at_least("error of the policy at the start", played.error, 0.35),
        at_most("the same", played.error, 0.5),
        at_most("its error after a hint", played.hinted_error, 0.1),
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Return what the issue asks of the experiment, seed by seed against reward alone."""
    fewer, by_other = reductions(results, "kl"), reductions(results, "kl_other")
    pairs = zip(results["habits", "kl"], results["habits", "rl"], strict=True)
    rewards = [hinted.final.reward - plain.final.reward for hinted, plain in pairs]
    negative, hinted = (_middle(results["far", arm], "error") for arm in ("negative", "kl"))
    return (
        at_least("share of errors that hints take away, median of seeds", median(fewer), 0.5),
        at_least("the same, low end of the interval of the median", interval(fewer)[0], 0.3),
        at_least("reward with hints less that without, median of seeds", median(rewards), -0.01),
        at_most("share of errors that hints of another episode take away", max(by_other), 0.3),
        at_least(
            "right action far: errors of fixed negative by errors of hints",
            negative / max(hinted, _LEAST_ERROR),
            1.5,
        ),
    )


def real_claims(result: RealResult | str) -> tuple[Claim, ...]:
    """Return what a hint does to a real model, and what it learns from it; or why none was had."""
    names = (
        "SmolLM2: probability of listed tools after a hint by that without",
        "SmolLM2: the same after a hint that lists other tools",
        "SmolLM2: the same without a hint after a short training",
    )
    bars = (">= 1.5", "<= 1", ">= 1.5")
    if isinstance(result, str):
        return tuple(
            Claim(claim=f"{name} (not measured: {result})", figure=0.0, bar=bar, holds=False)
            for name, bar in zip(names, bars, strict=True)
        )
    hinted, by_other, trained = names
    return (
        _ratio(hinted, result.hinted, result.plain, at_least, 1.5),
        _ratio(by_other, result.other_hinted, result.plain, at_most, 1.0),
        _ratio(trained, result.trained, result.plain, at_least, 1.5),
    )


def _ratio(
    name: str, figure: float, base: float, judge: Callable[[str, float, float], Claim], bar: float
) -> Claim:
    """Return a claim about a ratio, which names both of its parts."""
    return judge(f"{name} ({figure:.4f} by {base:.4f})", figure / base, bar)


def reductions(results: Results, arm: str, *, world: WorldName = "habits") -> list[float]:
    """Return for each seed the share of the errors of reward alone that an arm does not make."""
    return [
        1 - mine.final.error / max(plain.final.error, _LEAST_ERROR)
        for mine, plain in zip(results[world, arm], results[world, "rl"], strict=False)
    ]


def interval(figures: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an interval for the median of what the figures are drawn from.

    They are two of the figures, as many from either end, by the binomial distribution of how many
    fall below the median: of 15 the fourth from either end (96 %), of 6 the outermost (97 %). Of
    fewer than six they are the outermost too, and hold the median less often.

    Example:
        >>> interval([0.7, 0.1, 0.5, 0.3, 0.2, 0.9])
        (0.1, 0.9)
    """
    ordered, num = sorted(figures), len(figures)
    below, beyond = 0, 1 / 2**num
    while 2 * (beyond + comb(num, below + 1) / 2**num) <= 1 - _LEVEL:
        below += 1
        beyond += comb(num, below) / 2**num
    return ordered[below], ordered[-1 - below]


def _middle(results: Sequence[ArmResult], name: str) -> float:
    """Return the median of a figure over the seeds."""
    return median(getattr(result.final, name) for result in results)


def rows(results: Results) -> tuple[tuple[object, ...], ...]:
    """Return a row for each arm: medians of the seeds, with their least and most."""
    return tuple(_row(results, world, arm) for world, arm in results)


def _row(results: Results, world: WorldName, arm: str) -> tuple[object, ...]:
    mine = results[world, arm]
    errors = [result.final.error for result in mine]
    fewer = reductions(results, arm, world=world)
    return (
        world,
        arm,
        ARMS[arm].about,
        len(mine),
        round(median(errors), 3),
        f"{min(errors):.3f} to {max(errors):.3f}",
        round(median(fewer), 2),
        f"{min(fewer):.2f} to {max(fewer):.2f}",
        round(_middle(mine, "reward"), 3),
        round(_middle(mine, "any_error"), 2),
        round(_middle(mine, "calls"), 1),
        round(_middle(mine, "hinted_error"), 3),
        round(median(result.rollout_s for result in mine), 1),
        round(median(result.rl_s for result in mine), 1),
        round(median(result.teacher_s for result in mine), 1),
    )
