"""That exactly the feature's tests break, every time, and that undoing it cures all."""

from dataclasses import replace

import pytest

from pipeline.prepare import Prepared
from pipeline.task.grade import Desk
from pipeline.task.patch import make_patch
from pipeline.task.record import (
    Deletion,
    Evidence,
    FailToPass,
    Quarantined,
    Reject,
    Task,
    TestRun,
)
from pipeline.task.tree import read_tree
from pipeline.validate import validate
from tests.pipeline.conftest import DeskFor, MakeTree, TaskOf

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


CALC_TESTS = """
import pathlib
from calc import add

def test_add(): assert add(1, 2) == 3
def test_tree(): assert pathlib.Path("calc.py").read_text().count("def") == 1
"""


def test_a_snapshot_that_does_not_pass_again_is_rejected(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared, task: Task
):
    whole = {"calc.py": b"def add(a, b): return a + b\n", "test_calc.py": CALC_TESTS.encode()}
    ablated = whole | {
        "calc.py": b"",
        "test_calc.py": whole["test_calc.py"].replace(b"from calc import add\n", b""),
    }
    deletion = Deletion(
        patch=make_patch(whole, ablated),
        gold_patch=make_patch(ablated, ablated | {"calc.py": whole["calc.py"]}),
        paths=("calc.py", "test_calc.py"),
        seams=(),
        num_removed_lines=2,
    )
    ids = ("test_calc.py::test_add", "test_calc.py::test_tree", "test_calc.py::test_gone")
    feature = replace(task.feature, tests=ids)
    baseline = replace(prepared.baseline, passing=ids)
    desk = desk_for(make_tree({path: text.decode() for path, text in whole.items()}))
    result = validate(feature, deletion, baseline=baseline, desk=desk)
    detail = "1 of 3 tests do not pass, first: test_calc.py::test_gone: missing"
    assert result == Reject(stage="validation", reason="not_restored", detail=detail)
