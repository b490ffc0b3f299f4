"""That the targets break, every time, and nothing else: as quickly as can be, or plainly."""

from dataclasses import replace

import pytest

from pipeline.deletion import delete_feature, gone_names
from pipeline.library import open_library, plan_feature
from pipeline.prepare import Prepared
from pipeline.sandbox.protocol import Finished, Job, Sandbox
from pipeline.task.grade import Desk
from pipeline.task.patch import make_patch
from pipeline.task.record import Evidence, FailToPass, Quarantined, Task, TestRun
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree
from pipeline.validate import Method, validate
from tests.pipeline.conftest import TaskOf

BROKEN_IMPORT = """
import contextlib, os, time
while True:
    with contextlib.suppress(OSError):
        os.fork() or time.sleep(30)
"""
CONVERT = "tests/test_units.py::test_convert"
UNKNOWN = "tests/test_units.py::test_unknown_unit"
DOCTEST = "pantry/units.py::pantry.units.convert"
SLUG = "tests/test_words.py::test_slug"
GONE = frozenset({"convert"})
METHODS: tuple[Method, ...] = ("fast", "plain")


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


def test_the_targets_break_each_in_its_way(task: Task):
    symptom = "NameError: name 'convert' is not defined"
    assert task.evidence.fail_to_pass == (
        FailToPass(id=CONVERT, ablated="failed", symptom=symptom),
        FailToPass(id=UNKNOWN, ablated="failed", symptom=symptom),
    )


def test_a_doctest_of_the_deleted_code_is_set_aside(task: Task):
    assert Quarantined(id=DOCTEST, reason="own-doctest") in task.evidence.quarantined


def test_targets_and_the_rest_are_the_baseline(task: Task, prepared: Prepared):
    targets = [it.id for it in task.evidence.fail_to_pass]
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
            "another test breaks: tests/test_odd.py::test_exports: failed: AssertionError",
        ),
        (
            "murmur",
            "target_survives",
            "1 of 1 targets do not break: tests/test_odd.py::test_murmur: passed",
        ),
    ],
)
def test_a_deletion_that_breaks_too_much_or_not_always_is_rejected(
    prepared: Prepared, pantry_desk: Desk, name: str, reason: str, detail: str
):
    result = judged(f"pantry.odd.{name}", prepared, pantry_desk)
    assert result == Reject(stage="validation", reason=reason, detail=detail)


def judged(title: str, prepared: Prepared, desk: Desk) -> Evidence | Reject:
    """Return what validation comes to for a candidate."""
    feature = next(it for slot in prepared.slots for it in slot if it.title == title)
    plan = plan_feature(feature, open_library(desk.tree, prepared.environment.import_roots))
    assert not isinstance(plan, Reject), plan
    deleted = delete_feature(feature, plan, baseline=prepared.baseline, desk=desk)
    assert not isinstance(deleted, Reject), deleted
    return validate(
        feature,
        deleted.deletion,
        baseline=prepared.baseline,
        desk=desk,
        gone=gone_names(plan),
    )


class Counting:
    """A sandbox that counts the tests of each run."""

    def __init__(self, inner: Sandbox) -> None:
        self.name = inner.name
        self.num_tests: list[int] = []
        self._inner = inner

    def run(self, job: Job) -> Finished:
        """Run a job, and count the results that it reports."""
        finished = self._inner.run(job)
        self.num_tests.append(finished.results.count(b'"kind": "test"'))
        return finished

    def stop(self) -> None:
        """Leave the stopping to whoever opened the sandbox."""

    def adopt(self, folder: object) -> None:
        """Make a folder usable by jobs."""
        self._inner.adopt(folder)


def validated(
    task: Task,
    prepared: Prepared,
    desk: Desk,
    *,
    tests: tuple[str, ...] = (CONVERT, UNKNOWN, DOCTEST),
    method: Method = "fast",
    **deletion: str,
) -> Evidence | Reject:
    """Validate a Deletion of `convert` with a prediction."""
    order = prepared.baseline.passing
    feature = replace(task.feature, tests=tuple(sorted(tests, key=order.index)))
    changed = replace(task.deletion, **deletion)
    return validate(
        feature, changed, baseline=prepared.baseline, desk=desk, gone=GONE, method=method
    )


@pytest.mark.parametrize(
    "tests",
    [
        (CONVERT, UNKNOWN, DOCTEST),
        (CONVERT, UNKNOWN, DOCTEST, SLUG),
        (DOCTEST, CONVERT),
        (UNKNOWN, SLUG),
        (SLUG,),
        (DOCTEST,),
    ],
)
def test_the_fast_way_comes_to_what_the_plain_one_does(
    task: Task, prepared: Prepared, pantry_desk: Desk, tests: tuple[str, ...]
):
    fast = validated(task, prepared, pantry_desk, tests=tests, method="fast")
    assert fast == validated(task, prepared, pantry_desk, tests=tests, method="plain")


@pytest.mark.parametrize(
    ("tests", "num_tests"),
    [
        # Predicted tests, all, candidates.
        ((CONVERT, UNKNOWN, DOCTEST), [2, -1, 2]),
        # One more that is adopted is repeated twice.
        ((CONVERT, DOCTEST), [1, -1, 1, 2]),
        # Nothing breaks: nothing else is run.
        ((SLUG,), [1]),
    ],
)
def test_the_fast_way_runs_the_whole_suite_once_at_most(
    task: Task,
    prepared: Prepared,
    pantry_desk: Desk,
    tests: tuple[str, ...],
    num_tests: list[int],
):
    counting = Counting(pantry_desk.sandbox)
    validated(task, prepared, replace(pantry_desk, sandbox=counting), tests=tests)
    whole = len(prepared.baseline.passing) - 1  # the doctest is gone
    assert counting.num_tests == [whole if num < 0 else num for num in num_tests]


def test_the_whole_suite_ends_with_the_first_test_that_breaks_and_does_not_say_why(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    snapshot = read_tree(pantry_desk.tree)
    units = snapshot["pantry/units.py"].replace(b"def convert", b"def converted")
    # Broken besides: a test of `slug`, which is among the last ones.
    words = snapshot["pantry/words.py"].replace(b'"-".join', b'"+".join')
    init = snapshot["pantry/__init__.py"].replace(b"import convert, ", b"import ")
    changed = {"pantry/units.py": units, "pantry/words.py": words, "pantry/__init__.py": init}
    counting = Counting(pantry_desk.sandbox)
    ablated = {**snapshot, **changed}
    result = validated(
        task,
        prepared,
        replace(pantry_desk, sandbox=counting),
        patch=make_patch(snapshot, ablated),
        gold_patch=make_patch(ablated, snapshot),
    )
    assert isinstance(result, Reject)
    assert result.reason == "others_break"
    assert result.detail.startswith("another test breaks: ")
    assert counting.num_tests[1] < len(prepared.baseline.passing) - 1


def test_a_test_that_names_what_is_gone_is_adopted(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    result = validated(task, prepared, pantry_desk, tests=(CONVERT, DOCTEST))
    assert isinstance(result, Evidence)
    assert [it.id for it in result.fail_to_pass] == [CONVERT, UNKNOWN]


def test_a_target_that_survives_is_a_test_that_keeps_passing(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    result = validated(task, prepared, pantry_desk, tests=(CONVERT, UNKNOWN, DOCTEST, SLUG))
    assert result == replace(task.evidence, num_mutants=0, num_killed=0)


def test_a_gold_patch_that_restores_too_little_is_rejected(
    task: Task, prepared: Prepared, pantry_desk: Desk
):
    first = task.deletion.gold_patch.partition("diff --git a/pantry/units.py")[0]
    result = validated(task, prepared, pantry_desk, gold_patch=first)
    detail = "the gold patch does not give back the Snapshot byte for byte"
    assert result == Reject(stage="validation", reason="not_restored", detail=detail)


@pytest.mark.parametrize("method", METHODS)
def test_a_suite_that_runs_wild_without_the_feature_is_rejected_by_the_limit(
    task: Task, prepared: Prepared, pantry_desk: Desk, method: Method
):
    snapshot = read_tree(pantry_desk.tree)
    wild = snapshot | {"pantry/__init__.py": BROKEN_IMPORT.encode()}
    result = validated(
        task,
        prepared,
        pantry_desk,
        method=method,
        patch=make_patch(snapshot, wild),
        gold_patch=make_patch(wild, snapshot),
    )
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("validation", "processes")
    assert result.detail == "the ablated suite went over its limit of processes"
