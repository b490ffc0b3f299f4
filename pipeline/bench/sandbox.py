"""Bench `sandbox`: what a run of tests costs in each kind of sandbox, on the same suite."""

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.container_exec import ContainerExec
from pipeline.bench.desks import open_repo
from pipeline.manifest import load_manifest
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.task.claims import Report, at_least
from pipeline.task.grade import Desk
from pipeline.task.suite import SuiteRequest, SuiteRun, run_suite

# The suite of toolz's sandbox folder: a few milliseconds of tests, so that the rest shows.
MANIFEST = REPOS / "smoke.toml"
TESTS = "toolz/sandbox/tests/test_core.py"
LIMITS = Limits(wall_s=60, cpu_s=60)
# Rounds over all ways, and seconds of each way in a round.
ROUNDS, WINDOW_S = 3, 12.0
QUICK_ROUNDS, QUICK_WINDOW_S = 1, 2.0

WAYS: dict[str, Callable[[], Sandbox]] = {
    "docker run": partial(open_sandbox, "docker"),
    "docker exec": ContainerExec,
    "warm container": partial(open_sandbox, "docker", warm=True),
    "bubblewrap": partial(open_sandbox, "bubblewrap"),
    "warm bubblewrap": partial(open_sandbox, "bubblewrap", warm=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was done in a stretch of time."""

    num_runs: int
    wall_s: float
    # CPU seconds of the whole machine: an engine works for its containers outside of them.
    cpu_s: float

    @property
    def per_minute(self) -> float:
        """Runs a minute."""
        return 60 * self.num_runs / self.wall_s


def measure(folder: Path, *, quick: bool) -> Report:
    """Run the same small suite in each kind of sandbox, on all cores, by turns.

    Raises:
        CommandFailedError: a run did not do what the others did.
    """
    rounds, window_s = (QUICK_ROUNDS, QUICK_WINDOW_S) if quick else (ROUNDS, WINDOW_S)
    first = open_sandbox("bubblewrap")
    desk = open_repo(load_manifest(MANIFEST)[0], folder=folder, sandbox=first)
    ids = _choose_ids(desk)
    windows: dict[str, list[Window]] = {name: [] for name in WAYS}
    alone_s: dict[str, float] = {}
    sandboxes = {name: make() for name, make in WAYS.items()}
    try:
        for name, sandbox in sandboxes.items():
            alone_s[name] = _alone_s(partial(_run, desk, ids, sandbox))
        for _ in range(rounds):
            for name, sandbox in sandboxes.items():
                windows[name].append(_fill(partial(_run, desk, ids, sandbox), window_s=window_s))
    finally:
        for sandbox in (first, *sandboxes.values()):
            sandbox.stop()
    return _report(windows, alone_s, num_tests=len(ids))


def _choose_ids(desk: Desk) -> tuple[str, ...]:
    """Run the whole suite once, which leaves bytecode, and return the ids of the one file."""
    run = run_suite(
        desk.sandbox,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(keep_bytecode=True),
        limits=LIMITS,
    )
    return tuple(key for key in run.collected if key.startswith(f"{TESTS}::"))


def _run(desk: Desk, ids: tuple[str, ...], sandbox: Sandbox) -> SuiteRun:
    run = run_suite(
        sandbox,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(ids=ids, plugins=()),
        limits=LIMITS,
    )
    passed = sum(outcome.outcome == "passed" for outcome in run.outcomes)
    if passed != len(ids):
        last = run.finished.output.decode("utf-8", "replace")[-300:]
        raise CommandFailedError(f"{sandbox.name}: {passed} of {len(ids)} tests pass: {last}")
    return run


def _alone_s(run: Callable[[], SuiteRun]) -> float:
    """Return the median wall seconds of a run with nothing beside it, after one to warm up."""
    walls_s = []
    for _ in range(6):
        began_s = time.monotonic()
        run()
        walls_s.append(time.monotonic() - began_s)
    return statistics.median(walls_s[1:])


def _fill(run: Callable[[], SuiteRun], *, window_s: float) -> Window:
    """Run on every core for a stretch of time."""
    began_s, cpu_s = time.monotonic(), _machine_cpu_s()

    def work(_: int) -> int:
        num_runs = 0
        while time.monotonic() - began_s < window_s:
            run()
            num_runs += 1
        return num_runs

    num_workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(num_workers) as pool:
        num_runs = sum(pool.map(work, range(num_workers)))
    return Window(
        num_runs=num_runs,
        wall_s=time.monotonic() - began_s,
        cpu_s=_machine_cpu_s() - cpu_s,
    )


def _machine_cpu_s() -> float:
    """Return the CPU seconds of all processes since the machine started."""
    # proc_stat(5): user, nice, system; then idle, iowait; then irq and softirq.
    ticks = [int(text) for text in Path("/proc/stat").read_text("ascii").split("\n")[0].split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:7])) / os.sysconf("SC_CLK_TCK")


def _report(
    windows: dict[str, list[Window]], alone_s: dict[str, float], *, num_tests: int
) -> Report:
    rate = {name: statistics.median(it.per_minute for it in done) for name, done in windows.items()}
    cpu_s = {
        name: sum(it.cpu_s for it in done) / sum(it.num_runs for it in done)
        for name, done in windows.items()
    }
    floor = rate["docker run"]
    per_run = "runs a minute over docker run"
    return Report(
        bench="sandbox",
        claims=(
            at_least(f"warm container, {per_run}", rate["warm container"] / floor, 10),
            at_least(f"warm bubblewrap, {per_run}", rate["warm bubblewrap"] / floor, 10),
            at_least(
                "warm bubblewrap, runs a minute over bubblewrap",
                rate["warm bubblewrap"] / rate["bubblewrap"],
                1,
            ),
            at_least("tests in each run", num_tests, 1),
        ),
        columns=("sandbox", "runs a minute", "over docker run", "CPU s a run", "ms alone"),
        rows=tuple(
            (
                name,
                round(rate[name]),
                round(rate[name] / floor, 1),
                round(cpu_s[name], 3),
                round(1000 * alone_s[name]),
            )
            for name in windows
        ),
    )  # fmt: skip
