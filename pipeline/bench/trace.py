"""Bench `trace`: what it costs to see each line that a test reaches, and to keep that."""

import statistics
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.desks import open_repo
from pipeline.manifest import load_manifest
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.task.claims import Report, at_most
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.suite import WHOLE, SuiteRequest, SuiteRun, run_suite
from pipeline.task.trace_file import TracedSuite, write_trace

MANIFEST = REPOS / "python.toml"
# Suites that call small functions most of the time; a quick run takes the first.
LIBRARIES = ("toolz", "boltons", "marshmallow", "jinja2", "tomlkit", "more-itertools")
NUM_ROUNDS = 3
MAX_RATIO = 2.0
TRACED = SuiteRequest(trace=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the runs of one library's suite came to."""

    library: str
    num_tests: int
    num_stretches: int
    # CPU seconds of each plain and of each traced run.
    plain_s: tuple[float, ...]
    traced_s: tuple[float, ...]
    # Of the trace as it is kept.
    num_bytes: int
    # Ids that pass in each plain run and not in each traced one.
    failing: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Median CPU of a traced run over that of a plain one."""
        return statistics.median(self.traced_s) / statistics.median(self.plain_s)


def measure(folder: Path, *, quick: bool) -> Report:
    """Run each library's suite plainly and traced, by turns.

    Raises:
        CommandFailedError: a suite did not come to its end.
    """
    wanted = LIBRARIES[:1] if quick else LIBRARIES
    repos = {repo.name: repo for repo in load_manifest(MANIFEST)}
    sandbox = open_sandbox("auto")
    try:
        measured = [
            _measure(repos[name], folder=folder, sandbox=sandbox)
            for name in track(wanted, "tracing", console=Console(stderr=True))
        ]
    finally:
        sandbox.stop()
    return Report(
        bench="trace",
        claims=(
            *(
                at_most(f"CPU of the traced suite over the plain one, {it.library}",
                        round(it.ratio, 2), MAX_RATIO)
                for it in measured
            ),
            at_most("tests that pass plainly and not traced",
                    sum(len(it.failing) for it in measured), 0),
        ),
        columns=("library", "tests", "stretches", "plain CPU s", "traced CPU s", "ratio", "bytes",
                 "bytes a test", "failing"),
        rows=tuple(_row(it) for it in measured),
    )  # fmt: skip


def _measure(repo: Repo, *, folder: Path, sandbox: Sandbox) -> Measured:
    desk = open_repo(repo, folder=folder, sandbox=sandbox)
    limits = Limits(wall_s=60 + 20 * repo.test.wall_s, cpu_s=60 + 20 * repo.test.wall_s)
    _run(desk, SuiteRequest(keep_bytecode=True), limits)
    plain, traced = [], []
    for _ in range(NUM_ROUNDS):
        plain.append(_run(desk, WHOLE, limits))
        traced.append(_run(desk, TRACED, limits))
    trace = traced[-1].trace
    if trace is None:
        raise CommandFailedError(f"{repo.name}: the suite was not traced")
    passed = frozenset.intersection(*map(_passed, traced))
    kept = folder / f"{repo.name}.json.xz"
    write_trace(kept, TracedSuite(trace=trace, passed=passed, cpu_s=traced[-1].finished.cpu_s))
    return Measured(
        library=repo.name,
        num_tests=len(trace.reached),
        num_stretches=sum(len(module.stretches) for module in trace.modules),
        plain_s=tuple(run.finished.cpu_s for run in plain),
        traced_s=tuple(run.finished.cpu_s for run in traced),
        num_bytes=kept.stat().st_size,
        failing=tuple(sorted(frozenset.intersection(*map(_passed, plain)) - passed)),
    )


def _run(desk: Desk, request: SuiteRequest, limits: Limits) -> SuiteRun:
    run = run_suite(desk.sandbox, tree=desk.tree, bench=desk.bench, request=request, limits=limits)
    if not run.ended:
        raise CommandFailedError(f"{desk.tree.name}: the suite did not come to its end")
    return run


def _passed(run: SuiteRun) -> frozenset[str]:
    return frozenset(it.id for it in run.outcomes if it.outcome == "passed")


def _row(it: Measured) -> tuple[object, ...]:
    return (
        it.library,
        it.num_tests,
        it.num_stretches,
        round(statistics.median(it.plain_s), 2),
        round(statistics.median(it.traced_s), 2),
        round(it.ratio, 2),
        it.num_bytes,
        round(it.num_bytes / max(it.num_tests, 1)),
        "; ".join(it.failing),
    )
