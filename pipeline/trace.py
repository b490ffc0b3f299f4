"""Find out which test reaches which function, class, module and line: Trace."""

import hashlib
import statistics
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.baseline import limits_for, refuse_run
from pipeline.task.canonical import content_id
from pipeline.task.grade import Desk
from pipeline.task.origin import Environment, Repo, Snapshot, TestCommand
from pipeline.task.reached import NO_LINES, Lines
from pipeline.task.record import Baseline
from pipeline.task.reject import Reject
from pipeline.task.suite import SuiteRequest, run_suite
from pipeline.task.trace_file import TracedSuite, read_trace, write_trace
from pipeline.task.traced import NOTHING, SuiteTrace, each_mark

# Tests that only fail while traced are left out of features; more than this share is no trace.
MAX_DIFFERING_SHARE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Which baseline tests reach what.

    Example: `trace.tests["src/pkg/core.py", "Box.size"]`, `trace.lines.tests_at("setup.py", 1, 9)`.
    """

    # (path, qualname) of functions -> ids that enter them, in order of the Baseline.
    tests: dict[tuple[str, str], tuple[str, ...]]
    # path -> qualnames of all functions that anything enters.
    names: dict[str, frozenset[str]]
    # Functions that are entered while modules are imported or tests collected.
    early: frozenset[tuple[str, str]]
    # CPU seconds of the traced run over the median of the Baseline's.
    cpu_ratio: float
    # The same of lines, classes and modules; import and collection are apart.
    lines: Lines = NO_LINES


def trace_suite(
    repo: Repo, *, baseline: Baseline, desk: Desk, kept: Path | None = None
) -> Trace | Reject:
    """Run the suite once with marks in every module of the import roots.

    Args:
        repo: whose suite it is.
        baseline: of that suite.
        desk: where to run it.
        kept: file of the trace, see `trace_path`: read instead of running the suite when it is
            there, and written when not; None keeps nothing.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    traced = _read_or_run(repo, baseline=baseline, desk=desk, kept=kept)
    if isinstance(traced, Reject):
        return traced
    ratio = traced.cpu_s / max(statistics.median(baseline.cpu_s), 1e-9)
    ids = tuple(key for key in baseline.passing if key in traced.passed)
    return summarise(traced.trace, ids=ids, cpu_ratio=ratio)


def trace_path(
    cache_folder: Path, snapshot: Snapshot, environment: Environment, *, command: TestCommand
) -> Path:
    """Return where the trace of a suite is kept, by all that decides what it is."""
    key = content_id(snapshot.digest, environment.digest, command, _code_digest())
    return cache_folder / "traces" / f"{key}.json.xz"


@cache
def _code_digest() -> str:
    """Return the sha256 of the code that runs suites and traces them."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).with_name("task").rglob("*.py")):
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


def _read_or_run(
    repo: Repo, *, baseline: Baseline, desk: Desk, kept: Path | None
) -> TracedSuite | Reject:
    found = read_trace(kept) if kept else None
    if found is not None and _refuse(found, baseline) is None:
        return found
    traced = _run_traced(repo, baseline=baseline, desk=desk)
    if kept and isinstance(traced, TracedSuite):
        write_trace(kept, traced)
    return traced


def _run_traced(repo: Repo, *, baseline: Baseline, desk: Desk) -> TracedSuite | Reject:
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
    traced = TracedSuite(
        trace=run.trace or NOTHING,
        passed=frozenset(it.id for it in run.outcomes if it.outcome == "passed"),
        cpu_s=run.finished.cpu_s,
    )
    return _refuse(traced, baseline) or traced


def _refuse(traced: TracedSuite, baseline: Baseline) -> Reject | None:
    """Return why a traced run says nothing about the Baseline, if it does not."""
    differing = [key for key in baseline.passing if key not in traced.passed]
    if len(differing) > MAX_DIFFERING_SHARE * len(baseline.passing):
        detail = (
            f"{len(differing)} of {len(baseline.passing)} tests fail while traced: {differing[0]}"
        )
        return Reject(stage="trace", reason="differs", detail=detail)
    if not any(traced.trace.reached.values()):
        return Reject(stage="trace", reason="empty", detail="no test reaches a traced line")
    return None


def summarise(raw: SuiteTrace, *, ids: tuple[str, ...], cpu_ratio: float) -> Trace:
    """Turn marks by test into tests by function, for these tests alone."""
    entries = {
        mark: (module.path, it.qualname)
        for module in raw.modules
        for mark, it in module.marks()
        if it.kind == "function"
    }
    of_functions = sum(1 << mark for mark in entries)
    tests: dict[tuple[str, str], list[str]] = {}
    for key in ids:
        marks = each_mark(raw.reached.get(key, 0) & of_functions)
        for name in dict.fromkeys(entries[mark] for mark in marks):
            tests.setdefault(name, []).append(key)
    early = frozenset(
        entries[mark] for mark in each_mark((raw.at_import | raw.at_collection) & of_functions)
    )
    by_path: dict[str, set[str]] = {}
    for path, qualname in tests.keys() | early:
        by_path.setdefault(path, set()).add(qualname)
    return Trace(
        tests={name: tuple(keys) for name, keys in tests.items()},
        names={path: frozenset(found) for path, found in by_path.items()},
        early=early,
        cpu_ratio=cpu_ratio,
        lines=Lines(raw, ids=ids),
    )
