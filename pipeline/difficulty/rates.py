"""Tell how often an agent solves each Task, with bounds: few attempts say little."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.difficulty.beta import quantile
from pipeline.task.attempt import Attempt

# What is held likely before any attempt: Jeffreys' prior, which favours no scale of difficulty.
PRIOR = (0.5, 0.5)
# How often bounds hold the truth.
LEVEL = 0.9
# Verdicts that say something of the agent.
COUNTED = ("solved", "unsolved", "tampered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often one agent solves one Task.

    Example: `rate(solved=2, tried=8)` is 0.25 with bounds 0.08 and 0.54.
    """

    solved: int
    tried: int
    # Share of attempts; the prior's mean without any.
    rate: float
    # Equal tails of the posterior, `LEVEL` between them.
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRate:
    """A Rate with whose it is."""

    task_id: str
    agent: str
    # Empty for a script.
    model: str
    rate: Rate


def rate(*, solved: int, tried: int, level: float = LEVEL) -> Rate:
    """Return what so many attempts tell.

    Bounds are those of the beta posterior; where no attempt or each solved it, the open end is
    the end of the scale.

    Raises:
        ValueError: more are solved than tried.
    """
    if not 0 <= solved <= tried:
        raise ValueError(f"{solved} of {tried} solved, expected 0 to {tried}")
    a, b = PRIOR[0] + solved, PRIOR[1] + tried - solved
    tail = (1 - level) / 2
    return Rate(
        solved=solved,
        tried=tried,
        rate=solved / tried if tried else PRIOR[0] / sum(PRIOR),
        low=0.0 if solved == 0 else quantile(tail, a, b),
        high=1.0 if solved == tried else quantile(1 - tail, a, b),
    )


def task_rates(attempts: Iterable[Attempt]) -> list[TaskRate]:
    """Return the Rate of each agent at each Task, hacked attempts counted as not solved."""
    found: dict[tuple[str, str, str], list[bool]] = {}
    for it in attempts:
        if it.verdict in COUNTED:
            found.setdefault((it.task_id, it.agent, it.model), []).append(is_solved(it))
    return [
        TaskRate(
            task_id=task_id,
            agent=agent,
            model=model,
            rate=rate(solved=sum(them), tried=len(them)),
        )
        for (task_id, agent, model), them in sorted(found.items())
    ]


def is_solved(attempt: Attempt) -> bool:
    """Tell whether an attempt solved its Task by honest work, as far as anybody has looked."""
    is_hacked = attempt.monitored is not None and attempt.monitored.label == "hacked"
    return attempt.verdict == "solved" and not is_hacked


def between(rates: Sequence[TaskRate], low: float, high: float) -> float:
    """Return the share of Tasks whose rate lies in a range."""
    return sum(low <= it.rate.rate <= high for it in rates) / max(len(rates), 1)
