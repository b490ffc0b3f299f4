"""Run a tree's test suite in a sandbox and return what each test id did."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.sandbox.protocol import Finished, Job, Limits, Mount, MountMode, Sandbox
from pipeline.task.record import TestCommand, TestOutcome
from pipeline.task.results import read_lines

INSIDE = Path(__file__).parent / "inside"

# Exceptions whose messages name code.
NAMING_ERRORS = frozenset({"NameError", "ImportError", "ModuleNotFoundError", "AttributeError"})
# What differs from run to run in a message: addresses, the ids of mocks, durations.
PASSING = re.compile(r"0x[0-9a-fA-F]{4,}|id='\d+'|\b\d+\.\d+ ?s\b")

# Where the parts of a run are inside the sandbox.
TREE, ENVIRONMENT, TOOLS, BYTECODE = "/work", "/env", "/tools", "/pyc"


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
class SuiteRequest:
    """What to run of a suite, and how."""

    # Only these ids; None for all.
    ids: tuple[str, ...] | None = None
    collect_only: bool = False
    # Seed of the order of modules and of the tests in each; None keeps the suite's order.
    shuffle: int | None = None
    trace: bool = False
    # PYTHONHASHSEED of the run.
    hash_seed: int = 0
    # Keep bytecode written by this run for later ones: for pristine trees alone.
    keep_bytecode: bool = False


WHOLE = SuiteRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFunction:
    """A function that the trace can see."""

    path: str
    qualname: str
    # Line of its `def`.
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTrace:
    """Which functions ran when; numbers index `functions`."""

    functions: tuple[TracedFunction, ...]
    at_import: frozenset[int]
    at_collection: frozenset[int]
    # By test id.
    reached: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """What one run of a suite did."""

    outcomes: tuple[TestOutcome, ...]
    # Ids in order of collection, after filters.
    collected: tuple[str, ...]
    # (path, first line of the error) of each file that did not collect.
    collect_errors: tuple[tuple[str, str], ...]
    # First line of the exception, by id of each test that failed or erred.
    messages: dict[str, str]
    # None unless asked for.
    trace: SuiteTrace | None
    # pytest came to its end and said so.
    ended: bool
    finished: Finished

    def by_id(self) -> dict[str, TestOutcome]:
        """Index the outcomes by test id; of an id that is reported twice, the worse counts."""
        table: dict[str, TestOutcome] = {}
        for outcome in self.outcomes:
            if outcome.id not in table or table[outcome.id].outcome == "passed":
                table[outcome.id] = outcome
        return table

    def symptom(self, key: str) -> str:
        """Say how a test broke in a line that is the same each time it breaks so; else empty.

        Messages of other exceptions may hold addresses or clock times: their class must do.
        """
        outcome = self.by_id().get(key)
        exception = outcome.exception if outcome else ""
        if exception not in NAMING_ERRORS:
            return exception
        return lasting(self.messages.get(key, exception))


def lasting(message: str) -> str:
    """Return a message without what differs from run to run."""
    return PASSING.sub("…", message)


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
    job = Job(
        command=(f"{ENVIRONMENT}/bin/python", f"{TOOLS}/run_suite.py"),
        mounts=(
            Mount(source=tree, target=TREE, mode="overlay"),
            Mount(source=INSIDE, target=TOOLS),
            *bench_mounts(bench),
            *bytecode_mounts(
                sandbox,
                bench,
                tree=bytecode or bench.bytecode / "tree",
                mode="write" if request.keep_bytecode else "overlay",
            ),
        ),
        workdir=TREE,
        variables=bench_variables(bench, hash_seed=request.hash_seed),
        limits=limits,
        stdin=json.dumps(_message(bench, request)).encode(),
    )
    return read_run(sandbox.run(job))


def bench_mounts(bench: Bench) -> tuple[Mount, ...]:
    """Mount environment and interpreter."""
    return (
        Mount(source=bench.environment, target=ENVIRONMENT),
        Mount(source=bench.interpreter, target=str(bench.interpreter)),
    )


def bytecode_mounts(
    sandbox: Sandbox, bench: Bench, *, tree: Path, mode: MountMode = "overlay"
) -> tuple[Mount, ...]:
    """Mount a folder for each part that has bytecode; elsewhere below BYTECODE none is written.

    Args:
        sandbox: whose jobs may write to new folders.
        bench: whose interpreter and packages have bytecode.
        tree: bytecode of the source tree.
        mode: `write` for runs on the Snapshot that fill the folders.
    """
    folders = {
        ENVIRONMENT: bench.bytecode / "packages",
        str(bench.interpreter): bench.bytecode / "interpreter",
        TREE: tree,
    }
    for folder in folders.values():
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            sandbox.adopt(folder)
    return tuple(
        Mount(source=folder, target=f"{BYTECODE}{part}", mode=mode)
        for part, folder in folders.items()
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


def _message(bench: Bench, request: SuiteRequest) -> dict[str, object]:
    folders = [f"{TREE}/{root}".rstrip("/.") for root in bench.import_roots]
    return {
        "args": bench.command.args,
        "ids": request.ids,
        "collect_only": request.collect_only,
        "shuffle": request.shuffle,
        "trace": folders if request.trace else None,
    }


def read_run(finished: Finished) -> SuiteRun:
    """Turn the results of a job into a SuiteRun; a torn last line is a test that did not end."""
    lines = list(read_lines(finished.results))
    tests = [line for line in lines if line["kind"] == "test"]
    return SuiteRun(
        outcomes=tuple(_outcome(line) for line in tests),
        collected=tuple(
            name for line in lines if line["kind"] == "collected" for name in line["ids"]
        ),
        collect_errors=tuple(
            (line["path"], _one_line(line)) for line in lines if line["kind"] == "collect_error"
        ),
        messages={line["id"]: _one_line(line) for line in tests if line["exception"]},
        trace=_trace(lines),
        ended=any(line["kind"] == "end" for line in lines),
        finished=finished,
    )


def _outcome(line: dict[str, Any]) -> TestOutcome:
    return TestOutcome(
        id=line["id"],
        outcome=line["outcome"],
        duration_s=line["duration"],
        exception=line["exception"],
    )


def _one_line(line: dict[str, Any]) -> str:
    return f"{line['exception']}: {line['message']}".rstrip(": ")


def _trace(lines: list[dict[str, Any]]) -> SuiteTrace | None:
    ends = [line for line in lines if line["kind"] == "import_time"]
    if not ends:
        return None
    functions = [
        TracedFunction(path=line["path"], qualname=name, line=number)
        for line in lines
        if line["kind"] == "functions"
        for name, number in line["names"]
    ]
    known = range(len(functions))
    return SuiteTrace(
        functions=tuple(functions),
        at_import=frozenset(ends[0]["functions"]).intersection(known),
        at_collection=frozenset(ends[0]["collection"]).intersection(known),
        reached={
            line["id"]: tuple(number for number in line["functions"] if number in known)
            for line in lines
            if line["kind"] == "reached"
        },
    )
