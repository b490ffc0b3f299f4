"""Bench `hardening`: what the guarded run of an honest suite loses against plain pytest."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.desks import open_repo
from pipeline.manifest import load_manifest
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Job, Limits, Mount, Sandbox
from pipeline.task.claims import Report, at_least, at_most
from pipeline.task.grade import Desk
from pipeline.task.junit import read_junit
from pipeline.task.origin import Repo
from pipeline.task.suite import (
    ENVIRONMENT,
    TREE,
    SuiteRequest,
    bench_mounts,
    bench_variables,
    bytecode_mounts,
    run_suite,
)

MANIFEST = REPOS / "python.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
NUM_NAMED = 3
# Libraries with a suite that takes longer are left out.
MAX_WALL_S = 5.0
NUM_PLAIN = 2
REPORT = "/tmp/plain.xml"

# Hardened in a sandbox of each kind; plain pytest runs in the first.
BACK_ENDS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": partial(open_sandbox, "bubblewrap"),
    "docker": partial(open_sandbox, "docker"),
    "warm bubblewrap": partial(open_sandbox, "bubblewrap", warm=True),
}

# `classname::name` of each test case that passed, with how many did.
Passed = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the runs of one library's suite came to."""

    library: str
    num_plain: int
    # Cases that pass in one plain run and not in the other.
    flaky: tuple[str, ...]
    # By back end, the other cases that pass in only one of plain and hardened.
    differing: dict[str, tuple[str, ...]]
    # By back end, the CPU seconds of the hardened run over those of plain pytest.
    cpu_ratio: dict[str, float]


def measure(folder: Path, *, quick: bool) -> Report:
    """Run each library's suite plainly and hardened, and compare what passes case by case.

    Raises:
        CommandFailedError: a suite did not come to its end.
    """
    listed = load_manifest(QUICK_MANIFEST if quick else MANIFEST)
    repos = [repo for repo in listed if repo.test.wall_s <= MAX_WALL_S]
    sandboxes = {name: make() for name, make in BACK_ENDS.items()}
    try:
        compared = [
            _compare(repo, folder=folder, sandboxes=sandboxes)
            for repo in track(repos, "comparing", console=Console(stderr=True))
        ]
    finally:
        for sandbox in sandboxes.values():
            sandbox.stop()
    return _report(compared, quick=quick)


def _compare(repo: Repo, *, folder: Path, sandboxes: dict[str, Sandbox]) -> Compared:
    first = next(iter(sandboxes.values()))
    desk = open_repo(repo, folder=folder, sandbox=first)
    limits = Limits(wall_s=60 + 20 * repo.test.wall_s, cpu_s=60 + 20 * repo.test.wall_s)
    plugins = run_suite(
        first,
        tree=desk.tree,
        bench=desk.bench,
        request=SuiteRequest(keep_bytecode=True),
        limits=limits,
    ).plugins
    plain = [_plain(desk, first, limits) for _ in range(NUM_PLAIN)]
    flaky = {case for passed, _ in plain for case in passed.items() ^ plain[0][0].items()}
    differing, cpu_ratio = {}, {}
    for name, sandbox in sandboxes.items():
        request = SuiteRequest(plugins=plugins, guard=True)
        run = run_suite(sandbox, tree=desk.tree, bench=desk.bench, request=request, limits=limits)
        hardened = _passed(run.finished.collected, repo.name)
        cases = {case for case, _ in plain[0][0].items() ^ hardened.items()}
        differing[name] = tuple(sorted(cases - {case for case, _ in flaky}))
        cpu_ratio[name] = run.finished.cpu_s / min(cpu_s for _, cpu_s in plain)
    return Compared(
        library=repo.name,
        num_plain=sum(plain[0][0].values()),
        flaky=tuple(sorted({case for case, _ in flaky})),
        differing=differing,
        cpu_ratio=cpu_ratio,
    )


def _plain(desk: Desk, sandbox: Sandbox, limits: Limits) -> tuple[Passed, float]:
    """Run pytest as anybody would; return what passed, and the CPU seconds."""
    finished = sandbox.run(
        Job(
            command=(
                *(f"{ENVIRONMENT}/bin/python", "-m", "pytest", "-p", "no:randomly", "-q"),
                *("--continue-on-collection-errors", f"--junitxml={REPORT}"),
                *desk.bench.command.args,
            ),
            mounts=(
                Mount(source=desk.tree, target=TREE, mode="overlay"),
                *bench_mounts(desk.bench),
                *bytecode_mounts(sandbox, desk.bench, tree=desk.bench.bytecode / "tree"),
            ),
            workdir=TREE,
            variables=bench_variables(desk.bench),
            limits=limits,
            collect=REPORT,
        )
    )
    return _passed(finished.collected, desk.tree.name), finished.cpu_s


def _passed(report: bytes | None, what: str) -> Passed:
    cases = read_junit(report or b"")
    if cases is None:
        raise CommandFailedError(f"{what}: the suite did not come to its end")
    counts = {case: outcomes.count("passed") for case, outcomes in cases.items()}
    return {case: count for case, count in counts.items() if count}


def _report(compared: list[Compared], *, quick: bool) -> Report:
    num_same = sum(not any(it.differing.values()) for it in compared)
    return Report(
        bench="hardening",
        claims=(
            at_least("libraries", len(compared), 1 if quick else 10),
            at_least(
                "libraries where each hardened run passes exactly what plain pytest passes",
                num_same,
                1 if quick else 10,
            ),
            *(
                at_most(f"cases that differ, {name}", num_differing, 0)
                for name, num_differing in _count(compared).items()
            ),
        ),
        columns=(
            "library", "plain passes", "flaky", *BACK_ENDS,
            *(f"CPU {name}" for name in BACK_ENDS), "which",
        ),
        rows=tuple(_row(it) for it in compared),
    )  # fmt: skip


def _count(compared: list[Compared]) -> dict[str, int]:
    return {name: sum(len(it.differing[name]) for it in compared) for name in BACK_ENDS}


def _row(it: Compared) -> tuple[object, ...]:
    return (
        it.library,
        it.num_plain,
        len(it.flaky),
        *(len(it.differing[name]) for name in BACK_ENDS),
        *(round(it.cpu_ratio[name], 2) for name in BACK_ENDS),
        "; ".join(_named(it)),
    )


def _named(it: Compared) -> Iterator[str]:
    cases = {case: None for cases in it.differing.values() for case in cases}
    for case in list(cases)[:NUM_NAMED]:
        yield case + " in " + ", ".join(name for name, them in it.differing.items() if case in them)
    if len(cases) > NUM_NAMED:
        yield f"{len(cases) - NUM_NAMED} more"
