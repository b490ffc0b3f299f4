"""That a Task can be solved, and not by nothing."""

from dataclasses import replace

import pytest

from pipeline.prove import prove_task
from pipeline.task.grade import Desk
from pipeline.task.patch import make_patch
from pipeline.task.record import FailToPass, Task
from pipeline.task.reject import Reject
from pipeline.validate import Method
from tests.pipeline import pantry
from tests.pipeline.conftest import DeskFor, MakeTree, TaskOf

METHODS: tuple[Method, ...] = ("fast", "plain")


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


def with_targets(task: Task, *ids: str) -> Task:
    """Return a Task whose targets are some other tests."""
    targets = tuple(FailToPass(id=key, ablated="failed", symptom="") for key in ids)
    return replace(task, evidence=replace(task.evidence, fail_to_pass=targets))


@pytest.mark.parametrize("method", METHODS)
def test_a_task_that_its_gold_patch_solves_and_its_stubs_do_not_is_proven(
    task: Task, pantry_desk: Desk, method: Method
):
    assert prove_task(task, desk=pantry_desk, method=method) is None


PARSING = "tests/test_units.py::test_parse_nonsense"
NOT_PROVEN = {
    "target_survives": (
        "tests/test_words.py::test_slug",
        "1 targets pass on the solve tree, first: tests/test_words.py::test_slug",
    ),
    "not_solvable": (
        "tests/test_units.py::test_gone",
        "1 targets that are shown do not pass with the gold patch: tests/test_units.py::test_gone",
    ),
    # It fails without the Feature only because its module does not import.
    "stub_solves": (PARSING, "a stub that raises NotImplementedError passes all 1 targets"),
}


@pytest.mark.parametrize("reason", NOT_PROVEN)
def test_a_task_that_a_solver_could_not_or_need_not_solve_is_rejected(
    task: Task, pantry_desk: Desk, reason: str
):
    target, detail = NOT_PROVEN[reason]
    result = prove_task(with_targets(task, target), desk=pantry_desk)
    assert result == Reject(stage="validation", reason=reason, detail=detail)


SLUG = "tests/test_words.py::test_slug"


@pytest.mark.parametrize("has_others", [False, True])
def test_what_is_left_of_a_shortened_test_may_pass_while_another_fails(
    task: Task, pantry_desk: Desk, has_others: bool
):
    ids = (*(it.id for it in task.evidence.fail_to_pass if has_others), SLUG)
    grading = replace(task.grading, shortened=(SLUG,), hidden=())
    result = prove_task(replace(with_targets(task, *ids), grading=grading), desk=pantry_desk)
    detail = f"1 targets pass on the solve tree, first: {SLUG}"
    survives = Reject(stage="validation", reason="target_survives", detail=detail)
    assert result == (None if has_others else survives)


QUIET = "tests/test_quiet.py::test_quiet"


def test_a_task_that_a_stub_solves_by_doing_nothing_is_rejected(
    task: Task, make_tree: MakeTree, desk_for: DeskFor
):
    code = "from pantry import convert\n\ndef test_quiet():\n    convert(1, 'kg')\n"
    desk = desk_for(make_tree({**pantry.FILES, "tests/test_quiet.py": code}))
    result = prove_task(with_targets(task, QUIET), desk=desk)
    detail = "a stub that does nothing passes all 1 targets"
    assert result == Reject(stage="validation", reason="stub_solves", detail=detail)


@pytest.mark.parametrize("method", METHODS)
def test_a_task_whose_gold_patch_the_grader_does_not_accept_is_rejected(
    task: Task, pantry_desk: Desk, method: Method
):
    more = make_patch({}, {"json.py": b"loads = None\n"})
    deletion = replace(task.deletion, gold_patch=task.deletion.gold_patch + more)
    result = prove_task(replace(task, deletion=deletion), desk=pantry_desk, method=method)
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("validation", "not_restored")
    assert result.detail == "'json.py' would stand in for the module 'json'"


def test_only_the_plain_way_looks_at_tests_that_the_baseline_answers_for(
    task: Task, pantry_desk: Desk
):
    others = (*task.evidence.pass_to_pass, "tests/test_words.py::test_gone")
    changed = replace(task, evidence=replace(task.evidence, pass_to_pass=others))
    num = len(changed.evidence.fail_to_pass) + len(others)
    detail = f"1 of {num} tests do not pass, first: tests/test_words.py::test_gone: missing"
    assert prove_task(changed, desk=pantry_desk, method="plain") == Reject(
        stage="validation", reason="not_restored", detail=detail
    )
    assert prove_task(changed, desk=pantry_desk) is None
