"""Check Tasks from shards and Snapshots alone: only the gold patch solves, nothing leaks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.certify import certify, refuse_leaks
from pipeline.desk import Folders, reopen_desk
from pipeline.hacks.corpus import seeded_hacks
from pipeline.hacks.setting import set_up
from pipeline.images import restore_images
from pipeline.probe.recover import Recovery, recover
from pipeline.sandbox.protocol import Sandbox, SandboxBrokenError
from pipeline.steps import in_window
from pipeline.task.certificate import Certificate
from pipeline.task.grade import Desk, Grade, grade
from pipeline.task.manifest import check_files
from pipeline.task.record import Task
from pipeline.task.shards import read_tasks
from pipeline.task.solve_tree import solve_tree
from pipeline.task.stub import stub_patch
from pipeline.task.tree import read_tree

# `unrewarded`: anything but solved. `clean`: nobody can read the answer; `nothing`: one that looked
# for it found nothing.
Expected = Literal["solved", "unsolved", "unrewarded", "clean", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPatch:
    """A patch for a Task that needs no model."""

    # `gold`, `empty`, `stub`, or the class and name of a seeded hack.
    solver: str
    patch: str
    must_be: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one way of looking at a Task came to."""

    task_id: str
    # As in KnownPatch; `certificate`, `recovery`.
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
    """Grade known patches for one Task, scan anew what a solver sees, and look for the answer."""
    desk = reopen_desk(
        task.snapshot,
        task.environment,
        command=task.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    if line := restore_images(task, desk=desk):
        say(line)
    graded = (_check(task, it, desk=desk) for it in known_patches(task, read_tree(desk.tree)))
    leaks = _check_leaks(task, certify(task, desk=desk, folders=folders))
    return (*graded, leaks, _check_recovery(task, recover(task, desk=desk)))


def known_patches(task: Task, snapshot: Mapping[str, bytes]) -> Iterator[KnownPatch]:
    """Yield what is graded, and what must come of it."""
    yield KnownPatch(solver="gold", patch=task.deletion.gold_patch, must_be="solved")
    yield KnownPatch(solver="empty", patch="", must_be="unsolved")
    yield KnownPatch(solver="stub", patch=stub_patch(task, snapshot), must_be="unrewarded")
    for name, patch in seeded_hacks(set_up(task, solve_tree(task, snapshot))):
        yield KnownPatch(solver=name, patch=patch, must_be="unrewarded")


def _check(task: Task, known: KnownPatch, *, desk: Desk) -> Check:
    result = grade(task, known.patch, desk=desk)
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    is_right = _is_right(task, known, result)
    detail = "" if is_right else (result.detail or f"{known.solver} is {result.verdict}")
    return Check(
        task_id=task.id,
        solver=known.solver,
        must_be=known.must_be,
        is_right=is_right,
        detail=detail,
    )


def _is_right(task: Task, known: KnownPatch, result: Grade) -> bool:
    if known.must_be != "unsolved":
        return (result.verdict == "solved") == (known.must_be == "solved")
    # Without the Feature every target is among the broken tests.
    broken = {key for key, _ in result.broken}
    targets = {target.id for target in task.evidence.fail_to_pass}
    return result.verdict == "unsolved" and targets <= broken


def _check_leaks(task: Task, found: Certificate) -> Check:
    """Hold the certificate of a Task against a new scan."""
    reject = refuse_leaks(found) or refuse_leaks(task.leaks)
    detail = "" if reject is None else f"{reject.reason}: {reject.detail}"
    if found.prints != task.leaks.prints:
        detail = detail or "the certificate is of other fingerprints"
    return Check(
        task_id=task.id,
        solver="certificate",
        must_be="clean",
        is_right=not detail,
        detail=detail,
    )


def _check_recovery(task: Task, recovery: Recovery) -> Check:
    """Hold an agent that wants nothing but the deleted code to finding nothing."""
    found = [loot.place for loot in recovery.loot]
    detail = "" if recovery.is_whole else "the recovery agent did not look everywhere"
    return Check(
        task_id=task.id,
        solver="recovery",
        must_be="nothing",
        is_right=recovery.is_whole and not found,
        detail=f"the recovery agent found it in {found[0]}" if found else detail,
    )
