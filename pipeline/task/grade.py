"""Grade a patch against a Task: the one judgement that validation and training share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.task.patch import PatchError, apply_patch, is_protected, patch_paths
from pipeline.task.record import Deletion, Outcome, Task
from pipeline.task.suite import Bench, SuiteRequest, SuiteRun, run_suite
from pipeline.task.tree import (
    Changes,
    apply_changes,
    changed_tree,
    changes_between,
    find_misfit,
    pruned_bytecode,
    read_tree,
)

Verdict = Literal["solved", "unsolved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a patch is graded: the same for all patches of one Repo."""

    # The unpacked Snapshot.
    tree: Path
    bench: Bench
    sandbox: Sandbox
    # Folder for trees under test.
    scratch: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a patch is worth; infrastructure failure is an exception, never a Grade.

    Example: `Grade(verdict="solved", detail="", broken=(), dropped=(), num_expected=191)`.
    """

    verdict: Verdict
    # One line: why it is not solved.
    detail: str
    # Expected ids that did not pass, with what they did.
    broken: tuple[tuple[str, Outcome], ...]
    # Protected paths of the patch that were not applied.
    dropped: tuple[str, ...]
    num_expected: int


def grade(task: Task, patch: str, *, desk: Desk) -> Grade:
    """Grade a patch that was made against the Task's ablated tree.

    Args:
        task: what to solve.
        patch: unified diff from the ablated tree; may be empty.
        desk: where to run the Task's suite.

    Raises:
        SandboxStoppedError: the run is being stopped.
        SandboxBrokenError: the machine failed; nothing was learnt about the patch.
    """
    targets = tuple(target.id for target in task.evidence.fail_to_pass)
    ids = targets + task.evidence.pass_to_pass
    return grade_patch(patch, deletion=task.deletion, ids=ids, desk=desk)


def grade_patch(patch: str, *, deletion: Deletion, ids: tuple[str, ...], desk: Desk) -> Grade:
    """Grade a patch against a Deletion by the list of ids that must pass."""
    snapshot = read_tree(desk.tree)
    ablated = apply_changes(snapshot, apply_patch(snapshot, deletion.patch))
    try:
        changes = apply_patch(ablated, patch)
    except (PatchError, UnicodeError) as error:
        return _unsolved(f"the patch does not apply: {error}", num_expected=len(ids))
    final = changes_between(snapshot, graded_tree(snapshot, apply_changes(ablated, changes)))
    misfit = find_misfit(desk.tree, final)
    if misfit:
        return _unsolved(f"the patch does not apply: {misfit}", num_expected=len(ids))
    deleted = patch_paths(deletion.patch)
    with changed_suite(desk, final, hidden=deleted) as run_changed:
        run = run_changed(SuiteRequest())
    dropped = tuple(path for path in changes if is_protected(path))
    return judge(run, ids, dropped=dropped)


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


def graded_tree(snapshot: Mapping[str, bytes], work: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the tree under test: tests with their configuration of the Snapshot, else `work`."""
    tests = {path: content for path, content in snapshot.items() if is_protected(path)}
    return tests | {path: content for path, content in work.items() if not is_protected(path)}


def changed_limits(wall_s: float) -> Limits:
    """Give a changed tree twice the room of the Baseline: it may legitimately be slower."""
    return Limits(wall_s=20 + 20 * wall_s, cpu_s=20 + 16 * wall_s)


def judge(run: SuiteRun, ids: tuple[str, ...], *, dropped: tuple[str, ...] = ()) -> Grade:
    """Score a run by the list of ids that must pass; a missing id is a broken one."""
    found = outcomes_of(run, ids)
    broken = tuple((key, outcome) for key, outcome in found.items() if outcome != "passed")
    detail = ""
    if run.finished.limit is not None:
        detail = f"the suite went over its limit of {run.finished.limit}"
    elif not run.ended:
        detail = f"pytest did not end, exit status {run.finished.exit_code}"
    elif broken:
        detail = (
            f"{len(broken)} of {len(ids)} tests do not pass, first: {broken[0][0]}: {broken[0][1]}"
        )
    if detail:
        return _unsolved(detail, num_expected=len(ids), broken=broken, dropped=dropped)
    return Grade(verdict="solved", detail="", broken=(), dropped=dropped, num_expected=len(ids))


def outcomes_of(run: SuiteRun, ids: tuple[str, ...]) -> dict[str, Outcome]:
    """Return what each id did; an id that the run did not report is `missing`."""
    reported = run.by_id()
    return {key: reported[key].outcome if key in reported else "missing" for key in ids}


def _unsolved(
    detail: str,
    *,
    num_expected: int,
    broken: tuple[tuple[str, Outcome], ...] = (),
    dropped: tuple[str, ...] = (),
) -> Grade:
    return Grade(
        verdict="unsolved",
        detail=detail,
        broken=broken,
        dropped=dropped,
        num_expected=num_expected,
    )
