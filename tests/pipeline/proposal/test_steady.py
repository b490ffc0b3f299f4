"""What is left out of a suite is broken, wavers or is slow, and takes nothing good along."""

from pipeline.proposal.steady import broken, slow, wavering
from pipeline.sandbox.protocol import Finished
from pipeline.task.record import Baseline, Outcome, Quarantined, TestOutcome
from pipeline.task.run import SuiteRun


def _run(
    outcomes: dict[str, Outcome],
    *,
    durations_s: dict[str, float] | None = None,
    cpu_s: float = 1.0,
    lost: dict[str, str] | None = None,
) -> SuiteRun:
    return SuiteRun(
        outcomes=tuple(
            TestOutcome(
                id=key,
                outcome=outcome,
                duration_s=(durations_s or {}).get(key, 0.01),
                exception="OSError" if outcome in {"failed", "error"} else "",
            )
            for key, outcome in outcomes.items()
        ),
        collected=tuple(outcomes),
        collect_errors=tuple((lost or {}).items()),
        messages={},
        trace=None,
        ended=True,
        finished=Finished(
            exit_code=1, limit=None, output=b"", results=b"", cpu_s=cpu_s, wall_s=cpu_s
        ),
    )


def _values(run: SuiteRun) -> list[str]:
    return [it.value for it in broken(run)]


def test_a_test_is_named_once_when_all_of_its_parameters_fail():
    run = _run({"t.py::a[1]": "failed", "t.py::a[2]": "error", "t.py::b": "passed"})
    assert _values(run) == ["t.py::a"]
    assert {it.why for it in broken(run)} == {"Fails: OSError."}


def test_a_parameter_is_named_alone_when_others_pass():
    assert _values(_run({"t.py::a[1]": "failed", "t.py::a[2]": "passed"})) == ["t.py::a[1]"]


def test_no_good_test_goes_because_its_id_starts_like_a_bad_one():
    assert _values(_run({"t.py::a": "failed", "t.py::a_too": "passed"})) == []
    assert _values(_run({"t.py::a": "failed", "t.py::a_too": "failed"})) == [
        "t.py::a",
        "t.py::a_too",
    ]


def test_a_file_that_does_not_import_is_ignored_and_a_folder_is_not():
    run = _run({"t.py::b": "passed"}, lost={"u.py": "ImportError: no x", "tests": "KeyError"})
    [aside] = broken(run)
    assert (aside.option, aside.value) == ("--ignore", "u.py")
    assert aside.why == "Does not import: ImportError."


def test_what_depends_on_order_or_is_skipped_stays_in():
    baseline = Baseline(
        passing=("t.py::good",),
        quarantined=(
            Quarantined(id="t.py::at_times", reason="flaky"),
            Quarantined(id="t.py::never[x]", reason="failing"),
            Quarantined(id="t.py::never_mind", reason="skipped"),
            Quarantined(id="t.py::later", reason="order-dependent"),
            Quarantined(id="t.py::clock[…]", reason="unstable-id"),
        ),
        durations_s=(0.1,),
        cpu_s=(1.0,),
        num_runs=4,
        plugins=(),
        alarms=(),
    )
    assert [(it.value, it.why) for it in wavering(baseline)] == [
        ("t.py::at_times", "Differs from run to run."),
        ("t.py::never[x]", "Fails."),
    ]


SLOW: dict[str, Outcome] = {f"t.py::a{number}": "passed" for number in range(10)}


def test_few_slow_tests_are_left_out_of_a_suite_that_takes_too_long():
    run = _run(SLOW, durations_s={"t.py::a3": 20.0, "t.py::a5": 15.0}, cpu_s=40.0)
    assert [it.value for it in slow(run)] == ["t.py::a3", "t.py::a5"]


def test_nothing_is_slow_in_a_suite_that_is_quick_enough_or_slow_all_over():
    assert slow(_run(SLOW, durations_s={"t.py::a3": 20.0}, cpu_s=24.0)) == ()
    assert slow(_run(SLOW, durations_s=dict.fromkeys(SLOW, 10.0), cpu_s=100.0)) == ()


def test_a_busy_machines_clock_makes_no_test_slower_than_the_suite():
    """Durations of 400 s in a suite of 40 CPU seconds are ten times too long."""
    durations_s = {"t.py::a3": 200.0, "t.py::a5": 120.0, "t.py::a7": 80.0}
    run = _run(SLOW, durations_s=durations_s, cpu_s=40.0)
    assert [it.value for it in slow(run)] == ["t.py::a3", "t.py::a5"]
