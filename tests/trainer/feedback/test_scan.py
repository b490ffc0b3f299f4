import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.feedback import samples
from tests.trainer.feedback.checks import found, kinds
from tests.trainer.feedback.episodes import TOOLS, Said, call, episode, reply, says, tool
from trainer.feedback.hints import hint
from trainer.feedback.scan import DETECTORS, KINDS, answered, recheck, scan, worst
from trainer.records import Episode, Finding, ToolCall, ToolResult

LOST = call("save", "there is no tool 'save'", ok=False)
NO_MATCH = "ValueError: `old` must stand exactly once in a.py, it stands 0 times"

TEXTS = st.sampled_from([
    *("", "Done.", "All tests pass.", "<think>", "</think>", "it fails", NO_MATCH, "\0\ud800"),
    *("the call died with status 1: x", "exit status 0", "2 collected, 1 failed\nFAILED a: b"),
    *("FileNotFoundError: [Errno 2] No such file or directory: ''", "TypeError: x", "x = 1\n"),
    *("the command went over its limit of wall", "a.py:1: x\n… and 9 more", "DOES NOT COLLECT"),
    '{"name": "read_file", "arguments": {}}',
]) | st.text(max_size=20)
KEYS = st.sampled_from([
    *("path", "paths", "edits", "old", "new", "content", "command", "ids", "collect_only"),
    *("status", "text", "todos", "modules", "first_line"),
]) | st.text(max_size=3)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
PLANNED = (*TOOLS, tool("todo_write", todos="array"))
NAMES = st.sampled_from([*(it.name for it in TOOLS), "todo_write", "functions.search:0", ""])


@st.composite
def calls(draw: Any) -> tuple[ToolCall, ToolResult | None]:
    arguments = draw(st.none() | st.dictionaries(KEYS, VALUES, max_size=4))
    error = draw(st.sampled_from(["", "", "no JSON"]))
    made = ToolCall(
        name=draw(NAMES), arguments=arguments, raw=draw(TEXTS), error=error, start=0, end=0
    )
    result = ToolResult(
        ok=draw(st.booleans()),
        text=draw(TEXTS),
        is_fault=draw(st.sampled_from([False] * 4 + [True])),
    )
    return made, draw(st.sampled_from([result, result, None]))


@st.composite
def said(draw: Any) -> Said:
    return says(
        draw(TEXTS),
        *draw(st.lists(calls(), max_size=3)),
        stop=draw(st.sampled_from(["end", "length"])),
        is_summary=draw(st.sampled_from([False] * 5 + [True])),
    )


# What makes sense by itself, in any order.
PLAIN = st.sampled_from([
    *(samples.READ, samples.EDIT, samples.PASSES, samples.FAILS, samples.LISTED, samples.TODO),
    *(samples.NOTES, samples.SILENT, says("", samples.LOST), says("All tests pass.")),
    says("", call("read_file", samples.NO_FILE, ok=False, path="core.py")),
    says("", call("edit_file", "edited", path="a.py", old="x", new="import os  # Hmm")),
    says("", call("run_command", "1 failed in 0.1s\nexit status 1", ok=False, command="pytest")),
    says("word " * 400),
])


@st.composite
def episodes(draw: Any) -> Episode:
    return episode(
        *draw(st.lists(PLAIN | PLAIN | said(), max_size=8)),
        tools=draw(st.sampled_from([PLANNED, PLANNED, (), TOOLS[:2]])),
        ending=draw(st.sampled_from(["finished", "finished", "out_of_turns", "overlong"])),
        verdict=draw(st.sampled_from(["solved", "unsolved", "tampered", "odd"])),
        patch=draw(TEXTS),
    )


@settings(max_examples=150, deadline=None)
@given(one=episodes(), other=said())
def test_no_episode_however_odd_stops_a_detector_a_hint_or_a_recheck(
    one: Episode, other: Said
) -> None:
    findings = scan(one)
    assert findings == scan(one)
    for finding in findings:
        place = one.segments[finding.segment].replies[finding.reply]
        assert place.start <= finding.start <= finding.end <= place.end
        assert finding.kind in KINDS
        assert 0 <= finding.severity <= 1
        hint(finding, one)
        recheck(reply(other), finding, one)


@settings(max_examples=60, deadline=None)
@given(one=episodes())
def test_the_same_reply_in_its_own_place_never_mends_a_call(one: Episode) -> None:
    faults_of_calls = {it.kind for it in DETECTORS if it.asks_call}
    for finding in scan(one):
        if finding.kind in faults_of_calls:
            same = one.segments[finding.segment].replies[finding.reply]
            assert not recheck(same, finding, one)


def test_findings_come_in_order_of_the_replies_and_the_worst_of_one_first() -> None:
    unread = "ValueError: `old` must stand exactly once in a.py, it stands 0 times"
    both = says("", call("edit_file", unread, ok=False, path="a.py", old="1", new="2"), LOST)
    one = episode(says("", LOST), both, says("Done."))
    assert kinds(one) == [
        *("unknown_tool", "unknown_tool", "edit_without_match", "repeated_call"),
        "tool_error_ignored",
    ]
    assert [it.kind for it in worst(scan(one))] == [
        *("unknown_tool", "unknown_tool", "tool_error_ignored"),
    ]


MISSED = call("edit_file", NO_MATCH, ok=False, path="a.py", old="1", new="2")


def test_a_retry_that_was_cut_off_mends_nothing() -> None:
    one = episode(says("", LOST))
    finding = found(one, "unknown_tool")
    well = says("", call("read_file", path="a.py"))
    assert recheck(reply(well), finding, one)
    assert not recheck(reply(replace(well, stop="length")), finding, one)


def test_a_retry_gets_the_results_of_the_calls_that_it_shares_however_they_are_written() -> None:
    one = episode(says("", MISSED))
    made, _ = call("edit_file", path="a.py", new="2", old="1")
    spaced = says("", (replace(made, raw=f"functions.edit_file:7 {made.raw}"), None))
    assert not recheck(reply(spaced), found(one, "edit_without_match"), one)


def test_two_equal_calls_are_two_calls() -> None:
    first = call("run_tests", "1 collected, 1 failed\nFAILED t.py::a: E")
    second = call("run_tests", "1 collected, 1 passed")
    old = reply(says("", first, second, MISSED))
    again = reply(says("", *[call("run_tests")] * 3))
    assert [it.text for it in answered(again, old).results] == [first[1].text, second[1].text]


def test_kinds_are_unique() -> None:
    assert len(set(KINDS)) == len(KINDS)


def test_what_no_detector_found_cannot_be_looked_at_again() -> None:
    one = episode(says("", LOST))
    finding = found(one, "unknown_tool")
    other = Finding(
        segment=0, reply=0, kind="judged", start=0, end=1, evidence="", severity=finding.severity
    )
    with pytest.raises(ValueError, match="no detector 'judged', there are environment_fault"):
        recheck(one.segments[0].replies[0], other, one)


def test_an_episode_without_any_reply_has_no_findings() -> None:
    assert scan(episode()) == ()


def test_feedback_needs_no_torch() -> None:
    modules = "counts", "panel", "scan", "targets"
    code = "; ".join([*(f"import trainer.feedback.{it}" for it in modules), "import sys"])
    check = f"{code}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], cwd=Path(__file__).parents[3], check=True)
