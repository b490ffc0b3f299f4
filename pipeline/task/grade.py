"""Grade a patch against a Task: the one judgement that validation and training share."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from random import Random

from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.changed import Desk, changed_limits, changed_suite
from pipeline.task.ground import survey
from pipeline.task.patch import PatchError, PatchRead, patch_paths, read_patch
from pipeline.task.planting import Planted, draw_twins
from pipeline.task.receipt import Verdict
from pipeline.task.record import Grading, Task
from pipeline.task.screen import Screened, screen
from pipeline.task.sheet import Grade, Sheet, write_grade
from pipeline.task.solve_tree import hide_tests, restore_tests, solve_tree
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.tree import apply_changes, changes_between, find_misfit, read_tree
from pipeline.task.verdict import ALL, Defences, Expectation, judge, outcomes_of

__all__ = [
    "ALL",
    "Defences",
    "Desk",
    "Grade",
    "Verdict",
    "changed_limits",
    "changed_suite",
    "grade",
    "grade_once",
    "lay_out",
    "outcomes_of",
]

# A machine that fails a grade is given time to recover.
ATTEMPTS = 3
PAUSE_S = 1.0
# Tests that have always passed and may fail one time by chance.
MAX_BY_CHANCE = 3


def grade(
    task: Task,
    patch: str,
    *,
    desk: Desk,
    defences: Defences = ALL,
    drawing: Random | None = None,
) -> Grade:
    """Grade a patch that was made against the Task's solve tree.

    Args:
        task: what to solve.
        patch: unified diff from the solve tree; may be empty.
        desk: where to run the Task's suite.
        defences: all of them, but in the benchmark that shows what each buys.
        drawing: see `draw_twins`.

    Raises:
        SandboxStoppedError: the run is being stopped.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            result = grade_once(task, patch, desk=desk, defences=defences, drawing=drawing)
            if _may_be_chance(result, task):
                result = grade_once(task, patch, desk=desk, defences=defences, drawing=drawing)
        except (SandboxBrokenError, OSError) as error:
            failure = f"the machine failed {attempt} times: {error}"
            time.sleep(PAUSE_S * attempt if attempt < ATTEMPTS else 0)
        else:
            return result
    return write_grade(
        _sheet(task, patch, desk=desk, defences=defences), "invalid", " ".join(failure.split())
    )


def _may_be_chance(result: Grade, task: Task) -> bool:
    """Tell whether a patch does all that is asked for and breaks next to nothing else.

    A busy machine may fail a test that waits for a socket: what breaks by chance passes when it is
    run again, what the patch has broken does not.
    """
    broken = {key for key, _ in result.broken}
    is_little = 0 < len(broken) <= MAX_BY_CHANCE
    return (
        result.verdict == "unsolved" and is_little and broken.issubset(task.evidence.pass_to_pass)
    )


def grade_once(
    task: Task,
    patch: str,
    *,
    desk: Desk,
    defences: Defences = ALL,
    drawing: Random | None = None,
) -> Grade:
    """Grade a patch; a machine that fails is an exception.

    Raises:
        SandboxStoppedError: the run is being stopped.
        SandboxBrokenError, OSError: the machine failed; nothing was learnt about the patch.
    """
    snapshot = read_tree(desk.tree)
    laid = lay_out(task, patch, snapshot, desk=desk, defences=defences)
    if isinstance(laid, Grade):
        return laid
    tree, screened = laid.tree, laid.screened
    plantable = _plantable(task.grading, tree, snapshot)
    planted = draw_twins(plantable, tree, defences=defences, drawing=drawing)
    run = _run(task, snapshot, {**tree, **planted.files}, desk=desk, defences=defences)
    expected = _expectation(task, screened, planted, defences=defences)
    judgement = judge(run, expected)
    return write_grade(
        _sheet(task, patch, desk=desk, defences=defences),
        judgement.verdict,
        judgement.detail,
        screened=screened,
        run=run,
        judgement=judgement,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A tree that is ready to be run."""

    tree: dict[str, bytes]
    screened: Screened


def lay_out(
    task: Task,
    patch: str,
    snapshot: Mapping[str, bytes],
    *,
    desk: Desk,
    defences: Defences = ALL,
) -> Laid | Grade:
    """Return the tree that a patch is graded on, but for twins; or the Grade that needs no run."""
    shown = solve_tree(task, snapshot)
    sheet = _sheet(task, patch, desk=desk, defences=defences)
    try:
        read = read_patch(shown, patch)
    except (PatchError, UnicodeError) as error:
        return write_grade(sheet, "unsolved", f"the patch does not apply: {error}")
    screened = _screened(read, task, snapshot, desk=desk, defences=defences)
    if screened.refused:
        path, reason = screened.refused[0]
        return write_grade(sheet, "tampered", f"{path!r} {reason}", screened=screened)
    tree = _graded_tree(task, snapshot, apply_changes(shown, screened.kept), defences=defences)
    misfit = find_misfit(desk.tree, changes_between(snapshot, tree))
    if misfit:
        return write_grade(
            sheet, "unsolved", f"the patch does not apply: {misfit}", screened=screened
        )
    return Laid(tree=tree, screened=screened)


def _sheet(task: Task, patch: str, *, desk: Desk, defences: Defences) -> Sheet:
    ids = _expected_ids(task, defences)
    return Sheet(task=task, patch=patch, ids=ids, sandbox=desk.sandbox.name)


def _expected_ids(task: Task, defences: Defences) -> tuple[str, ...]:
    targets = tuple(target.id for target in task.evidence.fail_to_pass)
    ids = targets + task.evidence.pass_to_pass
    if defences.hidden and defences.restore_tests:
        return ids
    hidden = set(task.grading.hidden)
    return tuple(key for key in ids if key not in hidden)


def _screened(
    read: PatchRead, task: Task, snapshot: Mapping[str, bytes], *, desk: Desk, defences: Defences
) -> Screened:
    if not defences.screen:
        return Screened(kept=read.changes, dropped=tuple(read.oddities.items()), refused=())
    packages = desk.bench.environment.glob("lib/python3*/site-packages/*")
    headers = HeaderParser().parsestr(task.environment.metadata)
    ground = survey(
        snapshot,
        import_roots=desk.bench.import_roots,
        installed=(path.name for path in packages),
        project=headers["Name"] or task.repo.name,
        deleted=patch_paths(task.deletion.patch),
    )
    return screen(read.changes, read.oddities, ground=ground)


def _graded_tree(
    task: Task, snapshot: Mapping[str, bytes], work: dict[str, bytes], *, defences: Defences
) -> dict[str, bytes]:
    if not defences.restore_tests:
        return work
    tree = restore_tests(snapshot, work)
    return tree if defences.hidden else hide_tests(tree, task.grading)


def _plantable(
    grading: Grading, tree: Mapping[str, bytes], snapshot: Mapping[str, bytes]
) -> Grading:
    """Return a Grading without the twins of test modules that are not the Snapshot's."""

    def is_whole(test: str) -> bool:
        path = test.partition("::")[0]
        return tree.get(path) == snapshot[path]

    return replace(
        grading,
        sentinels=tuple(it for it in grading.sentinels if is_whole(it.test)),
        clones=tuple(it for it in grading.clones if is_whole(it)),
    )


def _run(
    task: Task,
    snapshot: Mapping[str, bytes],
    tree: Mapping[str, bytes],
    *,
    desk: Desk,
    defences: Defences,
) -> SuiteRun:
    request = SuiteRequest(
        plugins=task.grading.plugins if defences.pinned_plugins else None,
        guard=_is_guarded(defences),
    )
    deleted = patch_paths(task.deletion.patch)
    with changed_suite(desk, changes_between(snapshot, tree), hidden=deleted) as run_changed:
        return run_changed(request)


def _is_guarded(defences: Defences) -> bool:
    return defences.audit or defences.integrity or defences.two_channels


def _expectation(
    task: Task, screened: Screened, planted: Planted, *, defences: Defences
) -> Expectation:
    known = frozenset(task.grading.alarms)
    # Code that goes back elsewhere in the package may do there what the deleted code did.
    deleted = {alarm.partition(" ")[0] for alarm in known for path in task.deletion.paths
               if alarm.endswith(f" {path}")}  # fmt: skip
    moved = frozenset(f"{event} {path}" for event in deleted for path in screened.kept)
    return Expectation(
        ids=_expected_ids(task, defences),
        twins=planted.twins,
        alarms=known | moved,
        quarantined=frozenset(it.id for it in task.evidence.quarantined),
        is_guarded=_is_guarded(defences),
        defences=defences,
    )
