"""That exactly the feature's tests break, every time, and that undoing it cures all."""

from dataclasses import replace

import pytest

from pipeline.prepare import Prepared
from pipeline.task.grade import Desk
from pipeline.task.patch import make_patch
from pipeline.task.record import (
    Evidence,
    FailToPass,
    Quarantined,
    Reject,
    Task,
    TestRun,
)
from pipeline.task.tree import read_tree
from pipeline.validate import judge_places, prove_task, validate
from tests.pipeline.conftest import TaskOf

BROKEN_IMPORT = """
import contextlib, os, time
while True:
    with contextlib.suppress(OSError):
        os.fork() or time.sleep(30)
"""


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


def test_the_targets_break_each_in_its_way(task: Task):
    symptom = "NameError: name 'convert' is not defined"
    assert task.evidence.fail_to_pass == (
        FailToPass(id="tests/test_units.py::test_convert", ablated="failed", symptom=symptom),
        FailToPass(id="tests/test_units.py::test_unknown_unit", ablated="failed", symptom=symptom),
    )


DOCTEST = "pantry/units.py::pantry.units.convert"


def test_a_doctest_of_the_deleted_code_is_set_aside(task: Task):
    assert DOCTEST in task.feature.tests
    assert Quarantined(id=DOCTEST, reason="own-doctest") in task.evidence.quarantined


def test_targets_and_the_rest_are_the_baseline(task: Task, prepared: Prepared):
    targets = tuple(it.id for it in task.evidence.fail_to_pass)
    assert {*targets, DOCTEST} == set(task.feature.tests)
    assert set(targets).isdisjoint(task.evidence.pass_to_pass)
    judged = [DOCTEST, *targets, *task.evidence.pass_to_pass]
    assert sorted(judged) == sorted(prepared.baseline.passing)


def test_each_run_is_counted(task: Task, prepared: Prepared):
    num = len(prepared.baseline.passing)
    repeated = TestRun(tree="ablated", num_passed=0, num_failed=2, num_error=0, num_missing=1)
    assert task.evidence.runs == (
        replace(repeated, num_passed=num - 3),
        repeated,
        repeated,
        TestRun(tree="restored", num_passed=num, num_failed=0, num_error=0, num_missing=0),
    )


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        (
            "whisper",
            "others_break",
            "2 other tests break: tests/test_lazy.py::test_not_hum: failed",
        ),
        (
            "murmur",
            "flaky_target",
            "1 targets do not break when repeated: tests/test_odd.py::test_murmur",
        ),
    ],
)
def test_a_deletion_that_breaks_too_much_or_not_always_is_rejected(
    task_of: TaskOf, name: str, reason: str, detail: str
):
    result = task_of(f"pantry.odd.{name}")
    assert result == Reject(stage="validation", reason=reason, detail=detail)


def validated(
    task: Task, prepared: Prepared, desk: Desk, *, tests: tuple[str, ...] = (), **deletion: str
) -> Evidence | Reject:
    feature = replace(task.feature, tests=task.feature.tests + tests)
    changed = replace(task.deletion, **deletion)  # type: ignore[arg-type]
    return validate(feature, changed, baseline=prepared.baseline, desk=desk)


def test_a_target_that_survives_is_rejected(task: Task, prepared: Prepared, pantry_desk: Desk):
    other = "tests/test_words.py::test_slug"
    result = validated(task, prepared, pantry_desk, tests=(other,))
    detail = f"1 of 4 targets do not break: {other}: passed"
    assert result == Reject(stage="validation", reason="target_survives", detail=detail)


def test_a_gold_patch_that_restores_too_little_is_rejected(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    first = task.deletion.gold_patch.partition("diff --git a/pantry/units.py")[0]
    result = validated(task, prepared, pantry_desk, gold_patch=first)
    detail = "the gold patch does not give back the Snapshot byte for byte"
    assert result == Reject(stage="validation", reason="not_restored", detail=detail)


def test_a_suite_that_runs_wild_without_the_feature_is_rejected_by_the_limit(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    snapshot = read_tree(pantry_desk.tree)
    wild = snapshot | {"pantry/__init__.py": BROKEN_IMPORT.encode()}
    result = validated(task, prepared, pantry_desk, patch=make_patch(snapshot, wild))
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("validation", "processes")
    assert result.detail == "the ablated suite went over its limit of processes"


@pytest.mark.parametrize(
    ("names", "changeable"),
    [
        (["tests/test_a.py::test_a", "pkg/a.py::test_b[1]"], "pkg/a.py::test_b[1]"),
        (["checks/a.py::TestA::test_b"], "checks/a.py::TestA::test_b"),
        (["pkg/a.py::pkg.a.f", "README.md::README.md"], "pkg/a.py::pkg.a.f"),
        (["tests/test_a.py::test_a[x.y]", "pkg/a.py::pkg.a.f"], ""),
    ],
)
def test_targets_that_a_solver_may_change_are_rejected(names: list[str], changeable: str):
    targets = tuple(FailToPass(id=key, ablated="failed", symptom="") for key in names)
    detail = f"a solver's patch may change {changeable}"
    reject = Reject(stage="validation", reason="unprotected_target", detail=detail)
    assert judge_places(targets) == (reject if changeable else None)


def with_targets(task: Task, *ids: str) -> Task:
    """Return a Task whose targets are some other tests."""
    targets = tuple(FailToPass(id=key, ablated="failed", symptom="") for key in ids)
    return replace(task, evidence=replace(task.evidence, fail_to_pass=targets))


def test_a_task_that_its_gold_patch_solves_and_its_stub_does_not_is_proven(
    task: Task, pantry_desk: Desk
):
    assert prove_task(task, desk=pantry_desk) is None


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


def test_a_task_whose_gold_patch_the_grader_does_not_accept_is_rejected(
    task: Task, pantry_desk: Desk
):
    others = (*task.evidence.pass_to_pass, "tests/test_words.py::test_gone")
    changed = replace(task, evidence=replace(task.evidence, pass_to_pass=others))
    num = len(changed.evidence.fail_to_pass) + len(others)
    detail = f"1 of {num} tests do not pass, first: tests/test_words.py::test_gone: missing"
    assert prove_task(changed, desk=pantry_desk) == Reject(
        stage="validation", reason="not_restored", detail=detail
    )
