"""The tools an agent has in a sandbox: list, search, read, edit, write, delete, run things."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from pipeline.agent.shell import describe, read_command
from pipeline.sandbox.protocol import Job, Limits, Mount, MountMode, Sandbox
from pipeline.task.suite import (
    ENVIRONMENT,
    TOOLS,
    TREE,
    Bench,
    SuiteRequest,
    SuiteRun,
    bench_mounts,
    bench_variables,
    bytecode_mounts,
    lasting,
    run_suite,
)
from pipeline.task.work_tree import WorkTree, read_work_tree

INSIDE = Path(__file__).parent / "inside"

# Each served by `inside/file_tools.py`, but for the last.
FILE_TOOLS = (
    *("list_files", "search", "read_file", "edit_file", "edit_files", "write_file"),
    *("delete_files", "import_modules"),
)

FILE_LIMITS = Limits(wall_s=60, cpu_s=30, results_bytes=64 * 2**20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a tool.

    Example: `Call(thought="Where is it used?", tool="search", arguments={"text": "slugify"})`.
    """

    thought: str
    tool: str
    # As the tool takes them; JSON values only.
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool gave back."""

    ok: bool
    output: str
    # Of `run_tests`.
    run: SuiteRun | None = None


class Workbench:
    """Owns an agent's work tree: calls run in a sandbox over it, edits stay, test runs do not."""

    def __init__(
        self,
        tree: Path,
        *,
        bench: Bench,
        bytecode: Path,
        sandbox: Sandbox,
        limits: Limits,
        more: tuple[Mount, ...] = (),
    ) -> None:
        """Open a workbench.

        Args:
            tree: of the agent alone; calls change it.
            bench: everything else that the Repo's code needs.
            bytecode: of the tree, compiled.
            sandbox: where calls run.
            limits: of a run of the tests.
            more: what commands and file tools find besides.
        """
        self.tree = tree
        self._more = more
        # Of what the agent may know: the Snapshot's own gives deleted code away.
        self._bytecode = bytecode
        self._bench = bench
        self._sandbox = sandbox
        self._limits = limits
        self._is_closed = False
        # A call ends before the next one begins, or the tree is read.
        self._turn = Lock()

    def use(self, call: Call) -> Answer:
        """Use a tool; a wrong call is an answer that says so.

        Raises:
            SandboxStoppedError, SandboxBrokenError: the call was not carried out.
        """
        with self._turn:
            if self._is_closed:
                return Answer(ok=False, output="the workbench is closed")
            return self._use(call)

    def finish(self) -> WorkTree:
        """Take no more calls, and only then read what the agent left.

        Each call has ended with its sandbox, so nothing of the agent's is alive while its tree is
        read; nothing in it is run or followed either.

        Raises:
            OSError: the tree is nested deeper than a path can tell.
        """
        with self._turn:
            self._is_closed = True
        self._sandbox.adopt(self.tree)
        return read_work_tree(self.tree)

    def _use(self, call: Call) -> Answer:
        if call.tool in FILE_TOOLS:
            return self._use_files(call)
        if call.tool == "run_tests":
            return self._run_tests(call.arguments)
        if call.tool == "run_command":
            return self._run_command(call.arguments)
        known = ", ".join((*FILE_TOOLS, "run_tests", "run_command"))
        return Answer(ok=False, output=f"there is no tool {call.tool!r}, there are {known}")

    def _use_files(self, call: Call) -> Answer:
        message = {"tool": call.tool, "arguments": call.arguments}
        imports = call.tool == "import_modules"
        script = ("import_modules.py",) if imports else ("-I", "-S", "file_tools.py")
        job = Job(
            command=(f"{ENVIRONMENT}/bin/python", *script[:-1], f"{TOOLS}/{script[-1]}"),
            mounts=self._mounts("overlay" if imports else "write"),
            workdir=TREE,
            variables=bench_variables(self._bench),
            limits=FILE_LIMITS,
            stdin=json.dumps(message).encode(),
        )
        finished = self._sandbox.run(job)
        if finished.limit is not None:
            return Answer(ok=False, output=f"the call went over its limit of {finished.limit}")
        answer = _read_answer(finished.results)
        if answer is None:
            last = finished.output.decode("utf-8", "replace")[-300:]
            return Answer(
                ok=False, output=f"the call died with status {finished.exit_code}: {last}"
            )
        return answer

    def _mounts(self, mode: MountMode) -> tuple[Mount, ...]:
        return (
            Mount(source=self.tree, target=TREE, mode=mode),
            Mount(source=INSIDE, target=TOOLS),
            *bench_mounts(self._bench),
            *bytecode_mounts(self._sandbox, self._bench, tree=self._bytecode),
            *self._more,
        )

    def _run_command(self, arguments: Mapping[str, object]) -> Answer:
        """Run a shell over the tree; what it leaves running dies with its sandbox."""
        command = read_command(arguments)
        if isinstance(command, str):
            return Answer(ok=False, output=command)
        job = Job(
            command=("/bin/sh", "-c", command.text),
            mounts=self._mounts("write"),
            workdir=TREE,
            variables=bench_variables(self._bench),
            limits=command.limits,
        )
        finished = self._sandbox.run(job)
        is_good = finished.limit is None and finished.exit_code == 0
        return Answer(ok=is_good, output=describe(finished))

    def _run_tests(self, arguments: Mapping[str, object]) -> Answer:
        ids = arguments.get("ids")
        if unknown := sorted(arguments.keys() - {"ids", "collect_only"}):
            return Answer(ok=False, output=f"run_tests takes `ids`, `collect_only`, not {unknown}")
        if ids is not None and not isinstance(ids, list):
            return Answer(ok=False, output=f"`ids` is {ids!r}, expected a list of test ids")
        request = SuiteRequest(
            ids=None if ids is None else tuple(map(str, ids)),
            collect_only=bool(arguments.get("collect_only", False)),
        )
        run = run_suite(
            self._sandbox,
            tree=self.tree,
            bench=self._bench,
            request=request,
            limits=self._limits,
            bytecode=self._bytecode,
        )
        return Answer(ok=run.ended, output=summarise_run(run), run=run)


def _read_answer(results: bytes) -> Answer | None:
    """Read what a tool wrote; None for anything else, as modules that it imports can write too."""
    try:
        message = json.loads(results)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"ok": bool(ok), "output": str(output)}:
            return Answer(ok=ok, output=output)
    return None


def summarise_run(run: SuiteRun) -> str:
    """Say what a run of tests did in lines that are the same for the same outcomes."""
    if run.finished.limit is not None:
        return f"the run went over its limit of {run.finished.limit}"
    if not run.ended:
        return f"pytest did not end, exit status {run.finished.exit_code}"
    counts: dict[str, int] = {}
    for outcome in run.outcomes:
        counts[outcome.outcome] = counts.get(outcome.outcome, 0) + 1
    head = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    lines = [f"{len(run.collected)} collected" + (f", {head}" if head else "")]
    lines += [f"DOES NOT COLLECT {path}: {lasting(text)}" for path, text in run.collect_errors]
    lines += [
        f"{outcome.outcome.upper()} {outcome.id}: {run.symptom(outcome.id)}"
        for outcome in run.outcomes
        if outcome.outcome in {"failed", "error"}
    ]
    return "\n".join(lines)
