"""Which twins and hidden tests a Task gets: only what was seen to work on the Snapshot."""

from dataclasses import replace

import pytest

from pipeline.prepare import Prepared
from pipeline.task.planting import draw_twins, plant
from pipeline.task.record import FailToPass, Grading, Sentinel, Task
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import function_of
from pipeline.task.trial import MAX_CLONES, MAX_SENTINELS, can_withhold, measure_grading
from pipeline.task.verdict import ALL
from tests.pipeline.conftest import DeskFor, MakeTree, TaskOf

TESTS = """
import pytest

@pytest.mark.parametrize("value", [1, 2])
def test_value(value):
    assert value == value

def test_name(request):
    assert request.node.name == "test_name"

def test_tolerant():
    class Any:
        def __eq__(self, other): return True
    assert Any() == 1

class TestMore:
    def test_raises(self):
        with pytest.raises(ZeroDivisionError):
            1 / 0

def test_nothing():
    pass
"""
PACKAGE = "def f():\n    '>>> f()'\n"
DOCTESTS = ("--doctest-modules",)
NAMES = ("test_value[1]", "test_value[2]", "test_name", "test_tolerant", "TestMore::test_raises",
         "test_nothing")  # fmt: skip


@pytest.fixture(scope="module")
def grading(make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared) -> Grading:
    desk = desk_for(make_tree({"tests/test_a.py": TESTS, "pkg.py": PACKAGE}), args=DOCTESTS)
    names = [*(f"tests/test_a.py::{name}" for name in NAMES), "pkg.py::pkg.f"]
    targets = [FailToPass(id=name, ablated="failed", symptom="") for name in names]
    baseline = replace(prepared.baseline, plugins=(), alarms=("frames pkg.py",))
    result = measure_grading(targets, baseline=baseline, desk=desk, seed=0, task_id="a")
    assert isinstance(result, Grading), result
    return result


def test_twins_that_fail_and_copies_that_pass_are_kept(grading: Grading):
    assert {(it.test.rpartition("::")[2], it.kind) for it in grading.sentinels} == {
        ("test_value", "equality"),
        ("test_raises", "exception"),
    }
    assert {it.rpartition("::")[2] for it in grading.clones} == {
        "test_value",
        "test_tolerant",
        "test_raises",
        "test_nothing",
    }


def test_plugins_and_alarms_are_the_baselines_and_some_tests_are_hidden(grading: Grading):
    assert (grading.plugins, grading.alarms) == ((), ("frames pkg.py",))
    assert len(grading.hidden) in {1, 2}
    assert all(it.startswith("tests/test_a.py::") for it in grading.hidden)


def test_targets_that_are_not_solved_on_the_snapshot_itself_are_rejected(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared
):
    peeks = "import sys\ndef f(): return sys._getframe()\n"
    tests = "import pkg\ndef test_a(): assert pkg.f()\ndef test_b(): assert not pkg.f()\n"
    desk = desk_for(make_tree({"tests/test_a.py": tests, "pkg.py": peeks}))

    def measured(name: str, *alarms: str) -> Grading | Reject:
        target = FailToPass(id=f"tests/test_a.py::{name}", ablated="failed", symptom="")
        baseline = replace(prepared.baseline, plugins=(), alarms=alarms)
        return measure_grading([target], baseline=baseline, desk=desk, seed=0, task_id="a")

    def refused(detail: str) -> Reject:
        return Reject(stage="validation", reason="not_restored", detail=detail)

    assert measured("test_a") == refused("alarm: frames pkg.py")
    detail = "1 of 1 tests do not pass, first: tests/test_a.py::test_b: failed"
    assert measured("test_b", "frames pkg.py") == refused(detail)
    assert isinstance(measured("test_a", "frames pkg.py"), Grading)


def test_of_targets_that_stand_alone_or_in_a_table_a_part_can_be_withheld():
    snapshot = {"tests/test_a.py": TESTS.encode(), "tests/test_b.py": b"def test_one(): pass\n"}
    ids = [f"tests/test_a.py::{name}" for name in NAMES]
    assert can_withhold(ids, snapshot)
    assert can_withhold(ids[:2], snapshot)
    assert not can_withhold(["tests/test_b.py::test_one"], snapshot)


def test_a_small_task_hides_one_test_and_has_a_twin_of_each_kind(task_of: TaskOf):
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    assert len({function_of(key) for key in made.grading.hidden}) == 1
    assert {it.kind for it in made.grading.sentinels} == {"equality", "exception"}
    assert len(made.grading.clones) == 2
    assert len(made.grading.sentinels) <= MAX_SENTINELS
    assert len(made.grading.clones) <= MAX_CLONES


FILES = {"tests/test_a.py": TESTS.encode()}


def test_names_are_drawn_anew_and_look_alike(grading: Grading):
    draws = [draw_twins(grading, FILES, defences=ALL) for _ in range(5)]
    names = [frozenset(twin.id for twin in draw.twins) for draw in draws]
    assert len(set(names)) > 1
    assert all("::test_" in name for drawn in names for name in drawn)
    for draw in draws:
        text = draw.files["tests/test_a.py"].decode()
        assert all(text.count(f"def {it.id.rpartition('::')[2]}(") == 1 for it in draw.twins)
        assert text.startswith(TESTS)


def test_nothing_to_plant_changes_nothing():
    assert plant(FILES, sentinels=(), clones=()).files == {}
    bare = Grading(plugins=(), alarms=(), hidden=(), shortened=(), sentinels=(), clones=())
    assert draw_twins(bare, FILES, defences=ALL).twins == ()
    down = replace(ALL, sentinels=False, clones=False)
    sentinel = Sentinel(test="tests/test_a.py::test_value", number=0, kind="equality")
    full = replace(bare, sentinels=(sentinel,), clones=("tests/test_a.py::test_value",))
    assert draw_twins(full, FILES, defences=down).files == {}
