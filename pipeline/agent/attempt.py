"""Have a policy try a Task: from the solve tree to the patch that it leaves."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipeline.agent.loop import Done, Policy, run_agent
from pipeline.agent.tools import Workbench
from pipeline.sandbox.protocol import Mount, Sandbox
from pipeline.task.grade import Desk, changed_limits
from pipeline.task.record import Task, Turn
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import (
    changes_between,
    copied_tree,
    pruned_bytecode,
    read_tree,
    replace_files,
)
from pipeline.task.work_tree import WorkTree, patch_between, read_work_tree

MAX_TURNS = 200
# Of one output; room for what a command may print.
MAX_SHOWN_CHARS = 20_000

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Litter:
    """What a solver finds besides, where nobody has cleaned up: only experiments have some.

    Example: `Litter(tree={"build/lib/a.py": b"x = 1"}, folders={"/srv/old": {"a.py": b"x = 1"}})`.
    """

    # In the work tree, by path.
    tree: Files = field(default_factory=dict)
    # Elsewhere: absolute path of a folder -> its files by path.
    folders: Mapping[str, Files] = field(default_factory=dict)


NO_LITTER = Litter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What a policy did with a Task."""

    # Its last word.
    done: Done
    turns: tuple[Turn, ...]
    # Unified diff from the solve tree.
    patch: str


def try_task(
    task: Task,
    policy: Policy,
    *,
    desk: Desk,
    max_turns: int = MAX_TURNS,
    litter: Litter = NO_LITTER,
) -> Tried:
    """Let a policy work at a Task; return the transcript and the patch that it left.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    with solver_bench(task, desk=desk, litter=litter) as workbench:
        before = read_work_tree(workbench.tree)
        done, turns = run_agent(
            policy, workbench, max_turns=max_turns, max_shown_chars=MAX_SHOWN_CHARS
        )
        after = workbench.finish()
    patch = patch_between(_without(before, litter.tree), _without(after, litter.tree))
    return Tried(done=done, turns=turns, patch=patch)


def _without(tree: WorkTree, litter: Files) -> WorkTree:
    """Return a work tree without the litter as it was: no grader has it, gone or not."""
    files = {path: content for path, content in tree.files.items() if litter.get(path) != content}
    return replace(tree, files=files)


@contextmanager
def solver_bench(task: Task, *, desk: Desk, litter: Litter = NO_LITTER) -> Iterator[Workbench]:
    """Give a workbench over a Task's solve tree, for the time of a block."""
    snapshot = read_tree(desk.tree)
    changes = changes_between(snapshot, solve_tree(task, snapshot))
    scratch, sandbox = desk.scratch, desk.sandbox
    compiled = desk.bench.bytecode / "tree"
    compiled.mkdir(parents=True, exist_ok=True)
    with (
        copied_tree(desk.tree, scratch=scratch, sandbox=sandbox) as tree,
        pruned_bytecode(compiled, changes, scratch=scratch, sandbox=sandbox) as bytecode,
        _laid_out(litter.folders, scratch=scratch, sandbox=sandbox) as more,
    ):
        replace_files(tree, {**changes, **litter.tree}, sandbox=sandbox)
        yield Workbench(
            tree,
            bench=desk.bench,
            bytecode=bytecode,
            sandbox=sandbox,
            limits=changed_limits(desk.bench.command.wall_s),
            more=more,
        )


@contextmanager
def _laid_out(
    folders: Mapping[str, Files], *, scratch: Path, sandbox: Sandbox
) -> Iterator[tuple[Mount, ...]]:
    """Give folders of litter as mounts, for the time of a block."""
    with tempfile.TemporaryDirectory(prefix="litter-", dir=scratch) as name:
        mounts = tuple(
            Mount(source=Path(name, str(number)), target=target)
            for number, target in enumerate(folders)
        )
        for mount in mounts:
            replace_files(mount.source, folders[mount.target], sandbox=sandbox)
        yield mounts
