"""Lay out a changed tree and run its suite."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.task.suite import Bench, SuiteRequest, SuiteRun, run_suite
from pipeline.task.tree import (
    Changes,
    changed_tree,
    drop_bytecode,
    pruned_bytecode,
    replace_files,
    restore_files,
)


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
    limits = changed_limits(desk.bench.command.wall_s)
    with _laid_out(desk, changes, stale={*changes, *hidden}) as (tree, bytecode):
        yield partial(_run_changed, tree=tree, bytecode=bytecode, desk=desk, limits=limits)


@contextmanager
def changing_suite(
    desk: Desk, *, limits: Limits | None = None
) -> Iterator[Callable[[Changes, SuiteRequest], SuiteRun]]:
    """Give a function that runs the suite of one changed tree after another, laid out once.

    Only files that a run changes are without bytecode in it.

    Args:
        desk: whose tree is changed, and is as before after each run.
        limits: of each run; those of `changed_limits` when None.
    """
    used = limits or changed_limits(desk.bench.command.wall_s)
    with _laid_out(desk, {}, stale=()) as (tree, bytecode):

        def run_changed(changes: Changes, request: SuiteRequest) -> SuiteRun:
            replace_files(tree, changes, sandbox=desk.sandbox)
            dropped = drop_bytecode(bytecode, changes)
            run = _run_changed(request, tree=tree, bytecode=bytecode, desk=desk, limits=used)
            restore_files(tree, changes, base=desk.tree)
            restore_files(bytecode, dropped, base=desk.bench.bytecode / "tree")
            return run

        yield run_changed


@contextmanager
def _laid_out(desk: Desk, changes: Changes, *, stale: Iterable[str]) -> Iterator[tuple[Path, Path]]:
    """Give the folder of a changed tree, and that of its bytecode without some files'."""
    compiled = desk.bench.bytecode / "tree"
    compiled.mkdir(parents=True, exist_ok=True)
    scratch, sandbox = desk.scratch, desk.sandbox
    with (
        changed_tree(desk.tree, changes, scratch=scratch, sandbox=sandbox) as tree,
        pruned_bytecode(compiled, stale, scratch=scratch, sandbox=sandbox) as bytecode,
    ):
        yield tree, bytecode


def _run_changed(
    request: SuiteRequest, *, tree: Path, bytecode: Path, desk: Desk, limits: Limits
) -> SuiteRun:
    return run_suite(
        desk.sandbox,
        tree=tree,
        bench=desk.bench,
        request=request,
        limits=limits,
        bytecode=bytecode,
    )


def changed_limits(wall_s: float) -> Limits:
    """Give a changed tree twice the room of the Baseline: it may legitimately be slower."""
    return Limits(wall_s=20 + 20 * wall_s, cpu_s=20 + 16 * wall_s)
