"""What a run proves, and by what it is found out."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.sandbox.protocol import Finished
from pipeline.task.junit import case_of
from pipeline.task.record import Outcome, Sentinel, TestOutcome
from pipeline.task.run import Alarm, SuiteRun
from pipeline.task.verdict import ALL, Defences, Expectation, Twin, judge

FINISHED = Finished(exit_code=0, limit=None, output=b"", results=b"", cpu_s=1.0, wall_s=1.0)
A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"
SENTINEL = Sentinel(test=A, number=0, kind="equality")
TWIN, COPY = "tests/test_a.py::test_x", "tests/test_a.py::test_y"
GOOD: dict[str, Outcome] = {
    f"{A}[1]": "passed",
    f"{A}[2]": "passed",
    B: "passed",
    f"{TWIN}[1]": "failed",
    f"{TWIN}[2]": "error",
    COPY: "passed",
    "tests/test_a.py::test_other": "failed",
}
EXPECTED = Expectation(
    ids=(f"{A}[1]", f"{A}[2]", B),
    twins=(
        Twin(id=TWIN, test=A, sentinel=SENTINEL),
        Twin(id=COPY, test=B, sentinel=None),
    ),
    alarms=frozenset({"frames pkg/known.py"}),
    quarantined=frozenset({"tests/test_a.py::test_other"}),
    is_guarded=True,
    defences=ALL,
)


def run(changes: dict[str, Outcome | None] | None = None, **fields: Any) -> SuiteRun:
    """Return a run in which all is well, but for some outcomes (None: missing) and fields."""
    outcomes = {key: it for key, it in {**GOOD, **(changes or {})}.items() if it is not None}
    second: dict[str, tuple[str, ...]] = {
        case_of(key): ("passed" if outcome == "xpassed" else outcome,)
        for key, outcome in outcomes.items()
    }
    return replace(
        SuiteRun(
            outcomes=tuple(
                TestOutcome(id=key, outcome=outcome, duration_s=0.0)
                for key, outcome in outcomes.items()
            ),
            collected=tuple(outcomes),
            collect_errors=(),
            messages={},
            trace=None,
            ended=True,
            finished=replace(FINISHED, exit_code=1),
            second=second,
        ),
        **fields,
    )


def test_a_run_with_all_that_is_expected_is_a_solution():
    judgement = judge(run(alarms=(Alarm(event="frames", place="pkg/known.py"),)), EXPECTED)
    assert (judgement.verdict, judgement.detail, judgement.broken) == ("solved", "", ())
    assert judgement.alarms == ()
    assert [(it.number, it.outcomes) for it in judgement.twins] == [
        (0, ("failed", "error")),
        (-1, ("passed",)),
    ]


UNSOLVED: dict[str, tuple[SuiteRun, str]] = {
    "a test fails": (run({B: "failed"}), f"1 of 3 tests do not pass, first: {B}: failed"),
    "a test is skipped": (run({B: "skipped"}), f"1 of 3 tests do not pass, first: {B}: skipped"),
    "a test is gone": (run({B: None}), f"1 of 3 tests do not pass, first: {B}: missing"),
    "a test passes against its mark": (run({B: "xpassed"}), "1 of 3"),
    "a limit": (
        run(finished=replace(FINISHED, limit="memory"), second=None, ended=False),
        "the suite went over its limit of memory",
    ),
    "no end": (
        run(ended=False, second=None, finished=FINISHED),
        "pytest did not end, exit status 0",
    ),
    "a copy fails": (run({COPY: "failed"}), f"a copy of {B} does not pass: 1 failed"),
    "a copy is gone": (run({COPY: None}), f"a copy of {B} does not pass: missing"),
    "a twin is skipped": (
        run({f"{TWIN}[2]": "skipped"}),
        f"a twin of {A} does not fail: 1 failed, 1 skipped",
    ),
    "a wrong solution that does what a twin expects": (
        run({f"{A}[1]": "failed", f"{TWIN}[1]": "passed"}),
        f"1 of 3 tests do not pass, first: {A}[1]: failed",
    ),
}


@pytest.mark.parametrize("name", UNSOLVED)
def test_a_run_that_lacks_something_is_no_solution(name: str):
    found, detail = UNSOLVED[name]
    judgement = judge(found, EXPECTED)
    assert judgement.verdict == "unsolved"
    assert judgement.detail.startswith(detail)


TAMPERED: dict[str, tuple[SuiteRun, str, str]] = {
    "forged lines": (run(forged="reported twice: x"), "nonce", "the results were forged: reported"),
    "another report": (run(second={}), "two_channels", "the two reports disagree: "),
    "no report": (run(second=None), "two_channels", "the two reports disagree: pytest's own"),
    "an alarm": (run(alarms=(Alarm(event="gc", place="a.py"),)), "audit", "alarm: gc a.py"),
    "a known alarm elsewhere": (
        run(alarms=(Alarm(event="frames", place="pkg/other.py"),)),
        "audit",
        "alarm: frames pkg/other.py",
    ),
    "a changed runner": (
        run(alarms=(Alarm(event="integrity", place="_pytest.runner.x"),)),
        "integrity",
        "alarm: integrity _pytest.runner.x",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_run_that_was_made_to_look_solved_is_found_out_by_one_defence(name: str):
    found, defence, detail = TAMPERED[name]
    judgement = judge(found, EXPECTED)
    assert judgement.verdict == "tampered"
    assert judgement.detail.startswith(detail)
    down = replace(ALL, **{defence: False})
    assert judge(found, replace(EXPECTED, defences=down)).verdict == "solved"


@pytest.mark.parametrize("outcome", ["passed", "xpassed"])
def test_a_test_that_passes_with_its_twin_is_found_out(outcome: Outcome):
    found = run({f"{TWIN}[2]": outcome})
    judgement = judge(found, EXPECTED)
    assert judgement.verdict == "tampered"
    assert judgement.detail == f"{A} passes, and so does its twin with a wrong expectation"
    assert judge(found, replace(EXPECTED, twins=())).verdict == "solved"


def test_evidence_outweighs_what_is_lacking():
    judgement = judge(run({B: "failed"}, forged="a line"), EXPECTED)
    assert (judgement.verdict, judgement.broken) == ("tampered", ((B, "failed"),))


BY_STATUS = replace(
    EXPECTED, defences=Defences(expected_ids=False, nonce=False, two_channels=False)
)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (run(), "solved"),
        (run({B: None}), "solved"),
        (run({B: "failed"}), "unsolved"),
        (run(ended=False, finished=FINISHED), "solved"),
        (run(collect_errors=(("tests/test_a.py", "no"),)), "unsolved"),
        (run(finished=replace(FINISHED, exit_code=2)), "unsolved"),
    ],
)
def test_by_the_exit_status_alone_only_unknown_failures_count(found: SuiteRun, verdict: str):
    assert judge(found, BY_STATUS).verdict == verdict
