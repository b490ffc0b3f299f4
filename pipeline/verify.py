"""Check Tasks from shards and Snapshots alone: the gold patch must solve, no other one may."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.desk import Folders, open_desk
from pipeline.hacks.corpus import seeded_hacks
from pipeline.hacks.setting import set_up
from pipeline.images import restore_images
from pipeline.sandbox.protocol import Sandbox, SandboxBrokenError
from pipeline.steps import in_window
from pipeline.task.grade import Desk, Grade, grade
from pipeline.task.manifest import check_files
from pipeline.task.record import Reject, Task
from pipeline.task.shards import read_tasks
from pipeline.task.solve_tree import solve_tree
from pipeline.task.stub import stub_patch
from pipeline.task.tree import read_tree
from pipeline.uv import InstallError

# `unrewarded`: anything but solved.
Expected = Literal["solved", "unsolved", "unrewarded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A patch for a Task that needs no model."""

    # `gold`, `empty`, `stub`, or the class and name of a seeded hack.
    solver: str
    patch: str
    must_be: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a solver got for a Task."""

    task_id: str
    solver: str
    must_be: Expected
    # The grade is what it must be.
    is_right: bool
    # Why it is not; empty when it is.
    detail: str


def verify_run(
    folders: Folders, *, sandbox: Sandbox, jobs: int, say: Callable[[str], None]
) -> Iterator[tuple[Check, ...]]:
    """Grade every Task of a run with each attempt at it; yield the checks of each as they come.

    Args:
        folders: of the run and of what is shared with others.
        sandbox: where the tests run.
        jobs: how many Tasks are looked at at once.
        say: told in a line what is no longer as recorded, but decides nothing; any thread calls it.

    Raises:
        ShardError: a file of the run is not as it was written.
        SandboxBrokenError, IndexUnreachableError, InstallError, OSError: the machine failed.
    """
    check_files(folders.run)

    def work(task: Task) -> tuple[Check, ...]:
        return verify_task(task, folders=folders, sandbox=sandbox, say=say)

    yield from in_window(work, read_tasks(folders.run), width=jobs)


def verify_task(
    task: Task, *, folders: Folders, sandbox: Sandbox, say: Callable[[str], None]
) -> tuple[Check, ...]:
    """Grade each attempt at one Task."""
    desk = open_desk(
        task.snapshot,
        task.environment,
        command=task.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    if isinstance(desk, Reject):
        raise InstallError(f"{desk.reason}: {desk.detail}")
    if line := restore_images(task, desk=desk):
        say(line)
    return tuple(_check(task, it, desk=desk) for it in attempts_at(task, read_tree(desk.tree)))


def attempts_at(task: Task, snapshot: Mapping[str, bytes]) -> Iterator[Attempt]:
    """Yield what is graded, and what must come of it."""
    yield Attempt(solver="gold", patch=task.deletion.gold_patch, must_be="solved")
    yield Attempt(solver="empty", patch="", must_be="unsolved")
    yield Attempt(solver="stub", patch=stub_patch(task, snapshot), must_be="unrewarded")
    for name, patch in seeded_hacks(set_up(task, solve_tree(task, snapshot))):
        yield Attempt(solver=name, patch=patch, must_be="unrewarded")


def _check(task: Task, attempt: Attempt, *, desk: Desk) -> Check:
    result = grade(task, attempt.patch, desk=desk)
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    is_right = _is_right(task, attempt, result)
    detail = "" if is_right else (result.detail or f"{attempt.solver} is {result.verdict}")
    return Check(
        task_id=task.id,
        solver=attempt.solver,
        must_be=attempt.must_be,
        is_right=is_right,
        detail=detail,
    )


def _is_right(task: Task, attempt: Attempt, result: Grade) -> bool:
    if attempt.must_be != "unsolved":
        return (result.verdict == "solved") == (attempt.must_be == "solved")
    # Without the Feature every target is among the broken tests.
    broken = {key for key, _ in result.broken}
    targets = {target.id for target in task.evidence.fail_to_pass}
    return result.verdict == "unsolved" and targets <= broken
