"""What is read from the results pipe, which code under test can write to as well."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sandbox.protocol import Finished
from pipeline.task.reached import Lines
from pipeline.task.suite import Alarm, SuiteRun, read_run

NONCE = "0f" * 16
START = {"kind": "start", "runner": "pytest 9, Python 3"}
TEST = {"kind": "test", "id": "a", "outcome": "passed", "duration": 0, "exception": "",
        "message": "", "half_skipped": False}  # fmt: skip
OTHER = {**TEST, "id": "b"}
END = {"kind": "end", "status": 0}


def written(messages: Iterable[object], *, nonce: str = NONCE) -> bytes:
    """Return the messages as the recorder writes them."""
    lines = (f"{nonce} {number} {json.dumps(it)}\n" for number, it in enumerate(messages))
    return "".join(lines).encode()


def run_of(results: bytes, *, exit_code: int = 0) -> SuiteRun:
    finished = Finished(
        exit_code=exit_code, limit=None, output=b"", results=results, cpu_s=0.0, wall_s=0.0
    )
    return read_run(finished, nonce=NONCE)


def test_what_the_recorder_wrote_is_read_and_trusted():
    run = run_of(written([START, TEST, OTHER, END]))
    assert [it.id for it in run.outcomes] == ["a", "b"]
    assert (run.ended, run.runner, run.forged) == (True, START["runner"], "")


def test_a_forked_process_may_raise_alarms_and_nothing_else():
    alarm = json.dumps({"kind": "alarm", "event": "gc", "place": "a.py"})
    *first, end = written([START, TEST, END]).splitlines(keepends=True)
    run = run_of(b"".join([*first, f"{NONCE} fork {alarm}\n".encode(), end]))
    assert (run.alarms, run.ended, run.forged) == ((Alarm(event="gc", place="a.py"),), True, "")
    test = f"{NONCE} fork {json.dumps(OTHER)}\n".encode()
    assert run_of(b"".join([*first, test, end])).forged


MALFORMED = [
    *({**TEST, name: value} for name, value in {
        "id": ["a"], "outcome": "splendid", "duration": "1", "exception": None, "message": "\udcff",
        "half_skipped": 1,
    }.items()),
    {"kind": "test", "id": "a", "outcome": "passed"},
    {**TEST, "duration": float("nan")},
    {"kind": "collected", "ids": {}},
    {"kind": "collected", "ids": ["a", 1]},
    {"kind": "collect_error", "path": "a"},
    {"kind": ["end"]},
    {"kind": "end"},
    ["end"],
    {"kind": "functions", "path": "a.py", "names": [["f"]]},
    {"kind": "reached", "id": "a", "functions": [-1]},
    {"kind": "alarm", "event": "gc"},
]  # fmt: skip


@pytest.mark.parametrize("message", MALFORMED, ids=str)
def test_a_malformed_result_is_left_out_and_noticed(message: object):
    run = run_of(written([message]))
    assert (run.outcomes, run.collected, run.collect_errors, run.ended) == ((), (), (), False)
    assert run.forged


def test_a_torn_last_line_is_left_out_and_no_forgery():
    run = run_of(written([START, TEST]) + written([OTHER])[:-5])
    assert [it.id for it in run.outcomes] == ["a"]
    assert run.forged == ""


FORGERIES = {
    "another nonce": written([START]) + written([TEST, END], nonce="1f" * 16),
    "no nonce": written([START]) + json.dumps(TEST).encode() + b"\n",
    "a line again": written([START, TEST]) + written([START, TEST]).splitlines(keepends=True)[1],
    "a line is lost": written([START, TEST]).splitlines(keepends=True)[1],
    "an id again": written([TEST, {**TEST, "outcome": "failed"}, END]),
    "two ends": written([START, END, END]),
    "after the end": written([START, END, TEST]),
    "half a line after the end": written([START, END]) + b"0f",
    "two lists": written([{"kind": "collected", "ids": ["a"]}] * 2),
    "torn in the middle": written([START]) + written([TEST])[:20] + b"\n" + written([END]),
    "too deep": written([START]) + f"{NONCE} 1 ".encode() + b"[" * 100_000 + b"\n",
    "no text": written([START]) + b"\xff\x00\n",
    "an odd number": written([START]) + f"{NONCE} ² {json.dumps(TEST)}\n".encode(),
}


@pytest.mark.parametrize("results", FORGERIES.values(), ids=FORGERIES)
def test_what_the_recorder_would_not_have_written_is_noticed(results: bytes):
    assert run_of(results).forged


def test_an_exit_status_that_is_not_what_pytest_said_is_noticed():
    results = written([START, END])
    assert run_of(results).forged == ""
    assert run_of(results, exit_code=1).forged == "pytest ended with 0, its process with 1"


@given(st.binary(max_size=200), st.integers(0, 3))
def test_whatever_is_put_between_the_lines_is_no_result_and_noticed(junk: bytes, at: int):
    lines = written([START, TEST, OTHER, END]).splitlines(keepends=True)
    run = run_of(b"".join([*lines[:at], junk, b"\n", *lines[at:]]))
    assert {it.id for it in run.outcomes} <= {"a", "b"}
    assert run.forged


def test_a_trace_with_marks_that_nobody_planted_is_read_all_the_same():
    stretch = ["function", "f", 1, [2, 2]]
    lines = [
        {"kind": "marked", "path": "a.py", "first": 1, "stretches": [stretch]},
        {"kind": "reached", "id": "a", "marks": "ff"},
        {"kind": "early", "at_import": "8", "at_collection": "0"},
    ]
    run = run_of(written(lines))
    assert run.trace is not None
    assert run.trace.reached == {"a": 0xFF}
    assert Lines(run.trace, ids=("a",)).reached("a.py") == {2}


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "marked", "path": "a.py", "first": 10**9, "stretches": []},
        {"kind": "marked", "path": "a.py", "first": 0, "stretches": [["else", "f", 1, [2, 2]]]},
        {"kind": "marked", "path": "a.py", "first": 0, "stretches": [["rest", "f", 1, ["2", 2]]]},
        {"kind": "marked", "path": "a.py", "first": 0, "stretches": [["rest", "f", 1, [2]]]},
        {"kind": "reached", "id": "a", "marks": "-1"},
        {"kind": "reached", "id": "a", "marks": ""},
        {"kind": "early", "at_import": "0"},
    ],
)
def test_a_line_that_no_trace_has_is_noticed(line: dict[str, object]):
    assert run_of(written([START, line])).forged
