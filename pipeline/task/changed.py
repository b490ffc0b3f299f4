"""Lay out a changed tree and run its suite."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.task.suite import Bench, SuiteRequest, SuiteRun, run_suite
from pipeline.task.tree import Changes, changed_tree, pruned_bytecode


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a patch is graded: the same for all patches of one Repo."""

    # The unpacked Snapshot.
    tree: Path
    bench: Bench
    sandbox: Sandbox
    # Folder for trees under test.
    scratch: Path


@contextmanager
def changed_suite(
    desk: Desk, changes: Changes, *, hidden: Iterable[str] = ()
) -> Iterator[Callable[[SuiteRequest], SuiteRun]]:
    """Give a function that runs the suite of a changed tree, for the time of a block.

    Args:
        desk: whose tree is changed.
        changes: new content by path, None for a removed file.
        hidden: files whose bytecode is kept away, besides that of the changed ones.
    """
    compiled = desk.bench.bytecode / "tree"
    compiled.mkdir(parents=True, exist_ok=True)
    stale = {*changes, *hidden}
    scratch, sandbox = desk.scratch, desk.sandbox
    with (
        changed_tree(desk.tree, changes, scratch=scratch, sandbox=sandbox) as tree,
        pruned_bytecode(compiled, stale, scratch=scratch, sandbox=sandbox) as bytecode,
    ):
        yield partial(_run_changed, tree=tree, bytecode=bytecode, desk=desk)


def _run_changed(request: SuiteRequest, *, tree: Path, bytecode: Path, desk: Desk) -> SuiteRun:
    return run_suite(
        desk.sandbox,
        tree=tree,
        bench=desk.bench,
        request=request,
        limits=changed_limits(desk.bench.command.wall_s),
        bytecode=bytecode,
    )


def changed_limits(wall_s: float) -> Limits:
    """Give a changed tree twice the room of the Baseline: it may legitimately be slower."""
    return Limits(wall_s=20 + 20 * wall_s, cpu_s=20 + 16 * wall_s)
