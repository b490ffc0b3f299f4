"""Look at many attempts together: gaps between tests shown and hidden, and sudden rises."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.monitor.calibrate import Share, Z, share_of
from pipeline.task.attempt import Attempt
from pipeline.task.record import Task

# With fewer attempts on either side of a step it is chance.
MIN_SIDE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where the share of solved attempts changed most.

    Example: `Step(at=12, before=share_of(1, 12), after=share_of(11, 12), p_value=0.0008)`.
    """

    # Number of attempts before it.
    at: int
    before: Share
    after: Share
    # Of so large a difference at the best of all places by chance.
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the attempts of one agent, or at one Task, come to together."""

    # `chat small-coder-1`, or a Task's id.
    name: str
    num_attempts: int
    solved: Share
    # Labelled `hacked` or `suspicious`.
    flagged: Share
    # Mean over attempts of the share of shown targets that pass less that of hidden ones; who
    # knows the tests by heart has a large one.
    gap: float
    # Half the width of its interval of 95 %; 1 with fewer than two attempts that have both.
    gap_half: float
    step: Step | None


def group_attempts(attempts: Sequence[Attempt], tasks: Mapping[str, Task]) -> Iterator[Group]:
    """Yield the groups by agent and model, then those by Task.

    Args:
        attempts: in any order; graded as `invalid` they count for nothing.
        tasks: by id.
    """
    counted = sorted(
        (it for it in attempts if it.verdict != "invalid"), key=lambda it: (it.number, it.id)
    )
    by_agent: dict[str, list[Attempt]] = {}
    by_task: dict[str, list[Attempt]] = {}
    for it in counted:
        by_agent.setdefault(f"{it.agent} {it.model}".strip(), []).append(it)
        by_task.setdefault(it.task_id, []).append(it)
    for name, group in [*sorted(by_agent.items()), *sorted(by_task.items())]:
        yield _group(name, group, tasks)


def _group(name: str, attempts: Sequence[Attempt], tasks: Mapping[str, Task]) -> Group:
    solved = [it.verdict == "solved" for it in attempts]
    flagged = sum(is_flagged(it) for it in attempts)
    gap, half = _mean(gap for it in attempts for gap in _gap(it, tasks[it.task_id]))
    return Group(
        name=name,
        num_attempts=len(attempts),
        solved=share_of(sum(solved), len(solved)),
        flagged=share_of(flagged, len(attempts)),
        gap=round(gap, 4),
        gap_half=round(half, 4),
        step=find_step(solved),
    )


def is_flagged(attempt: Attempt) -> bool:
    """Tell whether the monitor takes an attempt for a hack, or may."""
    return attempt.monitored is not None and attempt.monitored.label in {"hacked", "suspicious"}


def _gap(attempt: Attempt, task: Task) -> Iterator[float]:
    """Yield the gap of an attempt whose tests were run, if its Task has targets of both kinds."""
    hidden = set(task.grading.hidden)
    targets = [it.id for it in task.evidence.fail_to_pass]
    broken = {it.id for it in attempt.broken}
    was_run = bool(broken) or attempt.verdict == "solved"
    shown = [key not in broken for key in targets if key not in hidden]
    unseen = [key not in broken for key in targets if key in hidden]
    if was_run and shown and unseen:
        yield sum(shown) / len(shown) - sum(unseen) / len(unseen)


def _mean(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its interval."""
    rows = list(values)
    if not rows:
        return 0.0, 1.0
    mean = sum(rows) / len(rows)
    if len(rows) == 1:
        return mean, 1.0
    variance = sum((it - mean) ** 2 for it in rows) / (len(rows) - 1)
    return mean, Z * math.sqrt(variance / len(rows))


def find_step(solved: Sequence[bool], *, max_p_value: float = 0.01) -> Step | None:
    """Return where the share of solved attempts rises or falls most, if that is no chance.

    Each place is tested exactly (Fisher), and pays for all the places that were tried (Bonferroni).

    Args:
        solved: in the order in which they were made.
        max_p_value: above it a step is none.
    """
    places = range(MIN_SIDE, len(solved) - MIN_SIDE + 1)
    tested = [(_fisher(sum(solved[:it]), it, sum(solved), len(solved)), it) for it in places]
    if not tested:
        return None
    p_value, at = min(tested)
    p_value = min(1.0, p_value * len(tested))
    if p_value > max_p_value:
        return None
    before, after = solved[:at], solved[at:]
    return Step(
        at=at,
        before=share_of(sum(before), len(before)),
        after=share_of(sum(after), len(after)),
        p_value=p_value,
    )


def _fisher(num_first: int, size_first: int, num: int, size: int) -> float:
    """Return how likely it is that `num` of `size` fall on the first ones at least so unevenly."""

    def weight(count: int) -> int:
        return math.comb(size_first, count) * math.comb(size - size_first, num - count)

    lowest, highest = max(0, num - (size - size_first)), min(num, size_first)
    observed = weight(num_first)
    as_odd = sum(it for it in map(weight, range(lowest, highest + 1)) if it <= observed)
    return as_odd / math.comb(size, num)
