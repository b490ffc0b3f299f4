"""Find out which test reaches which function: Trace."""

import statistics
from dataclasses import dataclass

from pipeline.baseline import limits_for, refuse_run
from pipeline.task.grade import Desk
from pipeline.task.record import Baseline, Reject, Repo
from pipeline.task.suite import SuiteRequest, SuiteTrace, run_suite

# Tests that only fail while traced are left out of features; more than this share is no trace.
MAX_DIFFERING_SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Which baseline tests enter which functions."""

    # (path, qualname) -> ids, in order of the Baseline.
    tests: dict[tuple[str, str], tuple[str, ...]]
    # path -> qualnames of all functions that anything enters.
    names: dict[str, frozenset[str]]
    # Entered while modules were imported or tests collected.
    early: frozenset[tuple[str, str]]
    # CPU seconds of the traced run over the median of the Baseline's.
    cpu_ratio: float


def trace_suite(repo: Repo, *, baseline: Baseline, desk: Desk) -> Trace | Reject:
    """Run the suite once with marks in every function of the import roots."""
    run = run_suite(
        desk.sandbox,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(trace=True),
        limits=limits_for(repo),
    )
    reject = refuse_run(run, stage="trace")
    if reject is not None:
        return reject
    passed = {outcome.id for outcome in run.outcomes if outcome.outcome == "passed"}
    differing = [key for key in baseline.passing if key not in passed]
    if len(differing) > MAX_DIFFERING_SHARE * len(baseline.passing):
        detail = (
            f"{len(differing)} of {len(baseline.passing)} tests fail while traced: {differing[0]}"
        )
        return Reject(stage="trace", reason="differs", detail=detail)
    if run.trace is None or not any(run.trace.reached.values()):
        return Reject(stage="trace", reason="empty", detail="no test enters a traced function")
    ratio = run.finished.cpu_s / max(statistics.median(baseline.cpu_s), 1e-9)
    return summarise(run.trace, baseline=baseline, cpu_ratio=ratio)


def summarise(raw: SuiteTrace, *, baseline: Baseline, cpu_ratio: float) -> Trace:
    """Turn numbered hits by test into tests by function."""
    names = [(function.path, function.qualname) for function in raw.functions]
    tests: dict[tuple[str, str], list[str]] = {}
    for key in baseline.passing:
        for name in dict.fromkeys(names[number] for number in raw.reached.get(key, ())):
            tests.setdefault(name, []).append(key)
    early = frozenset(names[number] for number in raw.at_import | raw.at_collection)
    by_path: dict[str, set[str]] = {}
    for path, qualname in tests.keys() | early:
        by_path.setdefault(path, set()).add(qualname)
    return Trace(
        tests={name: tuple(keys) for name, keys in tests.items()},
        names={path: frozenset(found) for path, found in by_path.items()},
        early=early,
        cpu_ratio=cpu_ratio,
    )
