"""Which tests are the targets, read off what runs of the ablated tree did."""

from collections.abc import Mapping

import pytest

from pipeline.observe import (
    Case,
    conclude,
    find_candidates,
    judge_places,
    names_gone,
    refuse_survivors,
)
from pipeline.sandbox.protocol import Finished
from pipeline.task.record import Baseline, Evidence, FailToPass, Feature, Outcome, TestOutcome
from pipeline.task.reject import Reject
from pipeline.task.schema import from_row, to_row
from pipeline.task.suite import SuiteRun
from tests.trainer.test_tasks import blank

NAMES = tuple(f"tests/test_a.py::test_{number}" for number in range(20))
GONE = frozenset({"slug", "pantry.words", "words"})
NAMED = "NameError: name 'slug' is not defined"


def case(*tests: int) -> Case:
    """Return a case of a Feature that is predicted to have some of the tests."""
    baseline = Baseline(
        passing=NAMES,
        quarantined=(),
        durations_s=(0.0,) * len(NAMES),
        cpu_s=(1.0,),
        num_runs=4,
        plugins=(),
        alarms=(),
    )
    row = {**to_row(blank(Feature)), "tests": [NAMES[number] for number in tests]}
    return Case(feature=from_row(Feature, row), baseline=baseline, gone=GONE)


def run(
    broken: Mapping[int, str], *, left_out: tuple[int, ...] = (), outcome: Outcome = "failed"
) -> SuiteRun:
    """Return a run in which some tests break with a message, and some are not reported."""
    ran = [number for number in range(len(NAMES)) if number not in left_out]
    finished = Finished(exit_code=1, limit=None, output=b"", results=b"", cpu_s=1.0, wall_s=1.0)
    return SuiteRun(
        outcomes=tuple(
            TestOutcome(
                id=NAMES[number],
                outcome=outcome if number in broken else "passed",
                duration_s=0.0,
                exception=broken.get(number, "").partition(":")[0],
            )
            for number in ran
        ),
        collected=NAMES,
        collect_errors=(),
        messages={NAMES[number]: text for number, text in broken.items()},
        trace=None,
        ended=True,
        finished=finished,
    )


def ids(*numbers: int) -> tuple[str, ...]:
    return tuple(NAMES[number] for number in numbers)


def rejected(result: object) -> tuple[str, str]:
    assert isinstance(result, Reject), result
    assert result.stage == "validation"
    return result.reason, result.detail


@pytest.mark.parametrize(
    ("message", "does"),
    [
        (NAMED, True),
        ("UnboundLocalError: cannot access local variable 'slug'", True),
        ("AttributeError: module 'pantry' has no attribute 'slug'", True),
        ("AttributeError: module 'pantry' has no attribute 'slugs'", False),
        ("ModuleNotFoundError: No module named 'pantry.words'", True),
        ("ImportError: cannot import name 'x' from 'pantry' (/work/pantry/words.py)", False),
        ("KeyError: 'slug'", True),
        ("KeyError: 'slug-1'", True),
        ("TypeError: words() takes no arguments", True),
        ("FixtureLookupError: ('slug', <SubRequest>)", True),
        ("AssertionError: slug", False),
        ("ValueError: slug", False),
        ("NameError", False),
        ("", False),
    ],
)
def test_an_exception_explains_itself_when_it_names_what_is_gone(message: str, does: bool):
    assert names_gone(message, GONE) == does


def test_tests_that_name_what_is_gone_are_adopted_in_the_baselines_order():
    whole = run({5: NAMED, 1: NAMED, 3: "AssertionError: no"})
    assert find_candidates(case(3), whole) == ids(1, 3, 5)


def test_a_predicted_test_that_passes_is_no_target():
    whole = run(dict.fromkeys([2, 3], "AssertionError"))
    candidates = find_candidates(case(1, 2, 3), whole)
    assert candidates == ids(1, 2, 3)
    passed: dict[str, Outcome] = {NAMES[1]: "passed", NAMES[2]: "error", NAMES[3]: "failed"}
    evidence = conclude(case(1, 2, 3), ids(1, 2, 3), whole, [passed, passed])
    assert isinstance(evidence, Evidence)
    assert evidence.fail_to_pass == tuple(
        FailToPass(id=key, ablated="failed", symptom="AssertionError") for key in ids(2, 3)
    )
    assert evidence.pass_to_pass == tuple(it for it in NAMES if it not in ids(2, 3))


@pytest.mark.parametrize(
    ("broken", "reason", "detail"),
    [
        (
            {1: NAMED, 7: "AssertionError: 1 != 2"},
            "others_break",
            f"another test breaks: {NAMES[7]}: failed: AssertionError",
        ),
        (
            {1: NAMED, 2: NAMED, 3: NAMED, 4: NAMED, 5: NAMED},
            "others_break",
            f"4 other tests break, 1 were predicted: {NAMES[2]}",
        ),
        ({}, "target_survives", f"1 of 1 targets do not break: {NAMES[1]}: passed"),
    ],
)
def test_what_breaks_too_much_or_too_little_is_rejected(
    broken: dict[int, str], reason: str, detail: str
):
    assert rejected(find_candidates(case(1), run(broken))) == (reason, detail)


def test_as_many_are_adopted_as_were_predicted_within_a_share_of_the_baseline():
    whole = run(dict.fromkeys(range(6), NAMED))
    assert find_candidates(case(0, 1, 2), whole) == ids(*range(6))
    whole = run(dict.fromkeys(range(7), NAMED))
    assert rejected(find_candidates(case(0, 1, 2, 3), whole)) == (
        "others_break",
        "35% of the tests break, expected at most 30%",
    )


def test_a_test_that_is_not_run_any_more_is_never_adopted():
    whole = run({1: NAMED}, left_out=(9,))
    detail = f"1 other tests are not run, first: {NAMES[9]}"
    assert rejected(find_candidates(case(1), whole)) == ("others_break", detail)


def test_of_a_run_that_was_ended_early_what_ended_it_is_told():
    whole = run({7: "AssertionError"}, left_out=tuple(range(8, 20)))
    detail = f"another test breaks: {NAMES[7]}: failed: AssertionError"
    assert rejected(find_candidates(case(9), whole)) == ("others_break", detail)


@pytest.mark.parametrize(
    ("outcomes", "detail"),
    [
        (("failed", "error"), ""),
        (("passed", "missing"), ""),
        (("passed", "passed"), f"2 of 2 targets do not break: {NAMES[0]}: passed"),
        (("passed", "passed", "failed"), ""),
        (("failed", "failed", "skipped"), f"1 of 3 targets do not break: {NAMES[2]}: skipped"),
    ],
)
def test_of_a_prediction_one_that_breaks_is_enough(outcomes: tuple[Outcome, ...], detail: str):
    tests = ids(*range(len(outcomes)))
    result = refuse_survivors(tests, dict(zip(tests, outcomes, strict=True)))
    assert (result.detail if result else "") == detail


@pytest.mark.parametrize(
    ("first", "again", "detail"),
    [
        (NAMED, "passed", f"1 targets do not break when repeated: {NAMES[1]}"),
        ("", "failed", f"1 targets break when repeated: {NAMES[1]}"),
    ],
)
def test_a_candidate_that_does_now_this_now_that_is_rejected(
    first: str, again: Outcome, detail: str
):
    whole = run({0: NAMED, 1: first} if first else {0: NAMED})
    repeats: list[dict[str, Outcome]] = [
        {NAMES[0]: "failed", NAMES[1]: "failed" if first else "passed"},
        {NAMES[0]: "failed", NAMES[1]: again},
    ]
    result = conclude(case(0, 1), ids(0, 1), whole, repeats)
    assert rejected(result) == ("flaky_target", detail)


@pytest.mark.parametrize(
    ("names", "changeable"),
    [
        (["tests/test_a.py::test_a", "pkg/a.py::test_b[1]"], "pkg/a.py::test_b[1]"),
        (["checks/a.py::TestA::test_b"], "checks/a.py::TestA::test_b"),
        (["pkg/a.py::pkg.a.f", "README.md::README.md"], "pkg/a.py::pkg.a.f"),
        (["tests/test_a.py::test_a[x.y]", "pkg/a.py::pkg.a.f"], ""),
        # The doctests of whole modules at the top.
        (["tests/test_a.py::test_a", "src/pkg/__init__.py::pkg", "a.py::a"], ""),
    ],
)
def test_targets_that_a_solver_may_change_are_rejected(names: list[str], changeable: str):
    targets = tuple(FailToPass(id=key, ablated="failed", symptom="") for key in names)
    detail = f"a solver's patch may change {changeable}"
    reject = Reject(stage="validation", reason="unprotected_target", detail=detail)
    assert judge_places(targets) == (reject if changeable else None)
