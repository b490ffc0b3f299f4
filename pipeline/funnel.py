"""Count a run's funnel: how much went into each stage, how much came out, why the rest did not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.task.record import Task
from pipeline.task.reject import RejectRow

REPO_STAGES = ("fetch", "environment", "baseline", "trace")
CANDIDATE_STAGES = (
    "feature",
    "selection",
    "deletion",
    "validation",
    "instruction",
    "leaks",
    "finalise",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelRow:
    """One stage of the funnel.

    Example: `FunnelRow(stage="deletion", unit="candidates", num_in=38, num_out=36, reasons=(…))`.
    """

    stage: str
    # What is counted: `repos`, `candidates`.
    unit: str
    num_in: int
    num_out: int
    # (reason, count), most frequent first.
    reasons: tuple[tuple[str, int], ...]


def count_funnel(tasks: Sequence[Task], rejects: Sequence[RejectRow]) -> tuple[FunnelRow, ...]:
    """Count the stages of a run from its shards alone."""
    repos = {task.repo.name for task in tasks} | {row.repo for row in rejects}
    others = [row for row in rejects if row.stage in CANDIDATE_STAGES]
    return (
        *_count(REPO_STAGES, "repos", len(repos), rejects),
        *_count(CANDIDATE_STAGES, "candidates", len(tasks) + len(others), rejects),
    )


def _count(
    stages: Sequence[str], unit: str, num_in: int, rejects: Sequence[RejectRow]
) -> list[FunnelRow]:
    rows = []
    for stage in stages:
        reasons = Counter(row.reason for row in rejects if row.stage == stage)
        num_out = num_in - reasons.total()
        rows.append(
            FunnelRow(
                stage=stage,
                unit=unit,
                num_in=num_in,
                num_out=num_out,
                reasons=tuple(reasons.most_common()),
            )
        )
        num_in = num_out
    return rows
