"""Run a tree's test suite in a sandbox and return what each test id did."""

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.sandbox.protocol import Job, Limits, Mount, MountMode, Sandbox
from pipeline.task.origin import TestCommand
from pipeline.task.patch import is_protected
from pipeline.task.run import (
    Alarm,
    SuiteRun,
    lasting,
    read_run,
)
from pipeline.task.trace_mount import join_mount
from pipeline.task.traced import SuiteTrace

__all__ = [
    "WHOLE",
    "Alarm",
    "Bench",
    "EarlyStop",
    "SuiteRequest",
    "SuiteRun",
    "SuiteTrace",
    "bench_mounts",
    "bench_variables",
    "bytecode_mounts",
    "lasting",
    "read_run",
    "run_suite",
    "suite_message",
]

INSIDE = Path(__file__).parent / "inside"

# Where the parts of a run are inside the sandbox.
TREE, ENVIRONMENT, TOOLS, BYTECODE = "/work", "/env", "/tools", "/pyc"
# The sandbox gives each job its own, which vanishes with it.
TEMPORARY = "/tmp"

# What `run_suite.py` imports before anything of a tree; a version of pytest may lack some parts.
PRELOAD = (
    *("pytest", "faulthandler", "importlib.metadata", "json", "pdb", "platform", "random"),
    *("readline", "xml.etree.ElementTree"),
    *(
        f"_pytest.{part}"
        for part in (
            *(
                "_argcomplete",
                "assertion",
                "cacheprovider",
                "capture",
                "debugging",
                "doctest",
                "faulthandler",
            ),
            *("fixtures", "helpconfig", "junitxml", "legacypath", "logging", "main", "mark"),
            *("monkeypatch", "pastebin", "python", "recwarn", "reports", "runner", "setuponly"),
            *("setupplan", "skipping", "stepwise", "subtests", "terminal", "terminalprogress"),
            *("threadexception", "tmpdir", "unittest", "unraisableexception", "warnings"),
        )
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything a suite needs besides the tree: the same for all trees of one Repo."""

    # Folder of the built Environment.
    environment: Path
    # Real prefix of its interpreter, mounted where it is.
    interpreter: Path
    # Folder of compiled bytecode shared by the runs: `interpreter`, `packages` and, of the
    # Snapshot, `tree`. Only runs on the Snapshot itself write to it.
    bytecode: Path
    command: TestCommand
    # Folders of the tree on `sys.path`, relative to it.
    import_roots: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStop:
    """Which outcomes end a run, because nothing that follows can change what it comes to.

    Example: `EarlyStop(must_pass=("tests/test_a.py::test_b",), excused=("NameError",))`.
    """

    # Ids whose not passing ends the run.
    must_pass: tuple[str, ...]
    # Classes of exceptions that end nothing.
    excused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRequest:
    """What to run of a suite, and how."""

    # Only these ids, of which one without parameters stands for all of them; None for all ids.
    ids: tuple[str, ...] | None = None
    collect_only: bool = False
    # Seed of the order of modules and of the tests in each; None keeps the suite's order.
    shuffle: int | None = None
    trace: bool = False
    # PYTHONHASHSEED of the run.
    hash_seed: int = 0
    # Keep bytecode written by this run for later ones: for pristine trees alone.
    keep_bytecode: bool = False
    # Entry points (group `pytest11`) to load, in order, from the Environment alone; None loads
    # what pytest finds by itself.
    plugins: tuple[str, ...] | None = None
    # Take the tree's code for hostile: alarms, and a second channel for the outcomes.
    guard: bool = False
    # End the run early; None runs all of it.
    stop: EarlyStop | None = None


WHOLE = SuiteRequest()


def run_suite(
    sandbox: Sandbox,
    *,
    tree: Path,
    bench: Bench,
    request: SuiteRequest = WHOLE,
    limits: Limits,
    bytecode: Path | None = None,
) -> SuiteRun:
    """Run the suite of a tree, which stays as it is.

    Args:
        sandbox: where to run it.
        tree: folder of the source tree.
        bench: everything else that the suite needs.
        request: what to run, and how.
        limits: of the whole run.
        bytecode: compiled bytecode of the tree; the Bench's own when None.
    """
    # Drawn for each run: what code under test does not know it cannot write.
    nonce = secrets.token_hex(16)
    second = f"{TEMPORARY}/{secrets.token_hex(8)}.xml" if request.guard else ""
    message = suite_message(
        bench,
        request,
        nonce=nonce,
        second=second,
        tests=_test_code(tree) if request.guard else [],
    )
    job = Job(
        command=(f"{ENVIRONMENT}/bin/python", f"{TOOLS}/run_suite.py"),
        mounts=(
            Mount(source=tree, target=TREE, mode="overlay"),
            *bench_mounts(bench),
            *bytecode_mounts(
                sandbox,
                bench,
                tree=bytecode or bench.bytecode / "tree",
                keep=request.keep_bytecode,
            ),
            *(_join_mounts(bench) if request.trace else ()),
            # Last, as in the images of Tasks: what changes least makes the lowest layers.
            Mount(source=INSIDE, target=TOOLS),
        ),
        workdir=TREE,
        variables=bench_variables(bench, hash_seed=request.hash_seed),
        limits=limits,
        stdin=json.dumps(message).encode(),
        collect=second,
        # A traced run hooks imports before pytest's; one that keeps bytecode must write pytest's.
        preload=() if request.trace or request.keep_bytecode else _preload(tree),
    )
    return read_run(sandbox.run(job), nonce=nonce)


def _join_mounts(bench: Bench) -> tuple[Mount, ...]:
    """Have the Pythons that a suite starts join its trace."""
    folder = bench.bytecode
    return (join_mount(bench.environment, at=ENVIRONMENT, tools=TOOLS, folder=folder),)


def _preload(tree: Path) -> tuple[str, ...]:
    """Return what a run imports before anything of its tree."""
    return (*PRELOAD, "tomllib") if (tree / "pyproject.toml").exists() else PRELOAD


def _test_code(tree: Path) -> list[str]:
    """Return the paths of the modules of a tree that no solver's patch can change."""
    paths = [
        Path(root, name).relative_to(tree).as_posix()
        for root, _, names in os.walk(tree)
        for name in names
        if name.endswith(".py")
    ]
    return sorted(path for path in paths if is_protected(path))


def bench_mounts(bench: Bench) -> tuple[Mount, ...]:
    """Mount environment and interpreter."""
    return (
        # Its folder's name is the digest of what it holds.
        Mount(source=bench.environment, target=ENVIRONMENT, key=bench.environment.name),
        Mount(source=bench.interpreter, target=str(bench.interpreter)),
    )


def bytecode_mounts(
    sandbox: Sandbox, bench: Bench, *, tree: Path, keep: bool = False
) -> tuple[Mount, ...]:
    """Mount a folder for each part that has bytecode; elsewhere below BYTECODE none is written.

    Args:
        sandbox: whose jobs may write to new folders.
        bench: whose interpreter and packages have bytecode.
        tree: bytecode of the source tree.
        keep: this run is on the Snapshot and fills the folders. Other runs find those of packages
            and interpreter read-only, which back ends can share; Python then writes none.
    """
    parts: tuple[tuple[str, Path, MountMode], ...] = (
        (ENVIRONMENT, bench.bytecode / "packages", "read"),
        (str(bench.interpreter), bench.bytecode / "interpreter", "read"),
        (TREE, tree, "overlay"),
    )
    for _, folder, _ in parts:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            sandbox.adopt(folder)
    return tuple(
        Mount(source=folder, target=f"{BYTECODE}{part}", mode="write" if keep else mode)
        for part, folder, mode in parts
    )


def bench_variables(bench: Bench, *, hash_seed: int = 0) -> tuple[tuple[str, str], ...]:
    """Return the environment variables of everything that runs a Repo's code."""
    ours = {
        "PATH": f"{ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin",
        "VIRTUAL_ENV": ENVIRONMENT,
        "PYTHONPYCACHEPREFIX": BYTECODE,
        "PYTHONHASHSEED": str(hash_seed),
        "SOURCE_DATE_EPOCH": "946684800",
    }
    theirs = {variable.name: variable.value for variable in bench.command.variables}
    return tuple(sorted({**ours, **theirs}.items()))


def suite_message(
    bench: Bench,
    request: SuiteRequest,
    *,
    nonce: str = "",
    second: str = "",
    tests: Sequence[str] = (),
) -> dict[str, object]:
    """Return what `run_suite.py` reads from its standard input; see there."""
    folders = [f"{TREE}/{root}".rstrip("/.") for root in bench.import_roots]
    return {
        "args": bench.command.args,
        "ids": request.ids,
        "collect_only": request.collect_only,
        "shuffle": request.shuffle,
        "trace": folders if request.trace else None,
        "plugins": request.plugins,
        "nonce": nonce,
        "second": second,
        "tests": tests,
        "stop": None if request.stop is None else asdict(request.stop),
    }
