"""Check Tasks from shards and Snapshots alone: the gold patch must solve, the empty one not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pipeline.desk import Folders, open_desk
from pipeline.sandbox.protocol import Sandbox
from pipeline.steps import in_window
from pipeline.task.grade import Grade, grade
from pipeline.task.manifest import check_files
from pipeline.task.record import Reject, Task
from pipeline.task.shards import read_tasks
from pipeline.uv import InstallError

Solver = Literal["gold", "empty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What a solver that needs no model got for a Task."""

    task_id: str
    solver: Solver
    # The grade is what it must be.
    is_right: bool
    # Why it is not; empty when it is.
    detail: str


def verify_run(folders: Folders, *, sandbox: Sandbox, jobs: int) -> Iterator[Check]:
    """Grade every Task of a run with the gold and the empty patch; yield as they come.

    Raises:
        ShardError: a file of the run is not as it was written.
        SandboxBrokenError, IndexUnreachableError, InstallError, OSError: the machine failed.
    """
    check_files(folders.run)

    def work(task: Task) -> tuple[Check, ...]:
        return verify_task(task, folders=folders, sandbox=sandbox)

    for checks in in_window(work, read_tasks(folders.run), width=jobs):
        yield from checks


def verify_task(task: Task, *, folders: Folders, sandbox: Sandbox) -> tuple[Check, ...]:
    """Grade one Task with the gold and the empty patch."""
    desk = open_desk(
        task.snapshot,
        task.environment,
        command=task.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    if isinstance(desk, Reject):
        raise InstallError(f"{desk.reason}: {desk.detail}")
    gold = grade(task, task.deletion.gold_patch, desk=desk)
    empty = grade(task, "", desk=desk)
    return (
        _check(task, "gold", is_right=gold.verdict == "solved", result=gold),
        _check(task, "empty", is_right=_is_empty_right(task, empty), result=empty),
    )


def _is_empty_right(task: Task, empty: Grade) -> bool:
    """Without the Feature every target must be among the broken tests."""
    broken = {key for key, _ in empty.broken}
    return all(target.id in broken for target in task.evidence.fail_to_pass)


def _check(task: Task, solver: Solver, *, is_right: bool, result: Grade) -> Check:
    detail = "" if is_right else (result.detail or f"{solver} is {result.verdict}")
    return Check(task_id=task.id, solver=solver, is_right=is_right, detail=detail)
