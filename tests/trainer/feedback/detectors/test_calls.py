from typing import Any

import pytest

from tests.trainer.feedback.checks import facts, found, is_mended, kinds
from tests.trainer.feedback.episodes import TOOLS, broken, call, episode, says, tool, written

NO_TOOL = "there is no tool 'read', there are list_files, search, read_file"
UNKNOWN = episode(says("Look.", call("read", NO_TOOL, ok=False, path="a.py")), says("Done."))
CUT_OFF = '{"name": "read_file", "arguments": {"path": "a.p'
ABROAD = 'I call ```json\n{"name": "read_file", "arguments": {"path": "a.py"}}\n```'


def test_a_call_of_a_tool_that_is_not_there_is_found_with_the_names_nearest_first() -> None:
    finding = found(UNKNOWN, "unknown_tool")
    made = UNKNOWN.segments[0].replies[0].calls[0]
    assert (finding.start, finding.end) == (made.start, made.end)
    tools = facts(UNKNOWN, "unknown_tool")["tools"]
    assert tools[0] == "search"
    assert {*tools} == {it.name for it in TOOLS}


def test_of_many_tools_the_forty_nearest_are_named() -> None:
    many = (*TOOLS, *(tool(f"far_{n}") for n in range(60)))
    one = episode(says("", call("reed_file", NO_TOOL, ok=False)), tools=many)
    tools = facts(one, "unknown_tool")["tools"]
    assert tools[0] == "read_file"
    assert len(tools) == 40


def test_a_call_of_a_tool_that_is_there_is_not_unknown() -> None:
    assert kinds(episode(says("", call("read_file", "text", path="a.py")))) == []


def test_another_call_of_no_tool_mends_nothing_and_one_of_a_tool_does() -> None:
    assert not is_mended(UNKNOWN, "unknown_tool", says("", call("open", path="a.py")))
    assert not is_mended(UNKNOWN, "unknown_tool", says("I give up."))
    assert is_mended(UNKNOWN, "unknown_tool", says("", call("read_file", path="a.py")))


def test_a_call_that_is_no_json_is_found_with_the_signature_of_its_tool() -> None:
    one = episode(says("", broken(CUT_OFF, name="read_file", error="unterminated string")))
    finding = found(one, "malformed_arguments")
    assert finding.evidence.startswith("unterminated string: ")
    assert finding.facts["signature"] == (
        "read_file(path: string, first_line?: integer, num_lines?: integer)"
    )
    assert not is_mended(one, "malformed_arguments", says("", broken(CUT_OFF, name="read_file")))
    assert is_mended(one, "malformed_arguments", says("", call("read_file", path="a.py")))


def test_a_call_that_the_cap_on_tokens_cut_off_is_not_malformed() -> None:
    assert kinds(episode(says("", broken(CUT_OFF), stop="length"))) == []
    first = says("", broken("{]"), broken(CUT_OFF), stop="length")
    assert kinds(episode(first)) == ["malformed_arguments"]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({}, "`path` is required"),
        ({"path": 3}, "`path` is of type string"),
        ({"path": "a", "line": 1}, "the keys are `path`, `first_line`, `num_lines` and no others"),
        ({"path": "a", "first_line": True}, "`first_line` is of type integer"),
    ],
)
def test_arguments_that_break_the_schema_and_were_refused_are_found(
    arguments: Any, rule: str
) -> None:
    one = episode(says("", call("read_file", "TypeError: read_file()", ok=False, **arguments)))
    finding = found(one, "schema_invalid")
    assert finding.facts["rule"] == rule
    assert not is_mended(one, "schema_invalid", says("", call("read_file", **arguments)))
    assert is_mended(one, "schema_invalid", says("", call("read_file", path="a.py")))


def test_arguments_that_the_environment_took_break_nothing() -> None:
    assert kinds(episode(says("", call("read_file", "text", path="a", line=1)))) == []


def test_arguments_that_a_tool_took_and_failed_with_break_nothing() -> None:
    text = "FileNotFoundError: [Errno 2] No such file or directory: 'a'"
    assert kinds(episode(says("", call("delete_files", text, ok=False, paths="a.py")))) == []
    late = says(
        "", call("run_command", "KeyError: 'a'\nexit status 1", ok=False, command="x", cwd=".")
    )
    assert kinds(episode(late)) == []


def test_a_call_that_failed_for_another_reason_breaks_no_schema() -> None:
    text = "PermissionError: [Errno 13] Permission denied: 'a.py'"
    assert kinds(episode(says("", call("read_file", text, ok=False, path="a.py")))) == []


HERMES = 'Look.\n<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
KIMI = (
    "Look.<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0"
    '<|tool_call_argument_begin|>{"path": "a.py"}<|tool_call_end|><|tool_calls_section_end|>'
)


@pytest.mark.parametrize(("text", "form"), [(HERMES, "kimi"), (KIMI, "hermes")])
def test_the_marks_of_another_family_are_a_wrong_format(text: str, form: Any) -> None:
    assert kinds(episode(written(text, form=form))) == ["wrong_call_format"]


@pytest.mark.parametrize(("text", "form"), [(HERMES, "hermes"), (KIMI, "kimi")])
def test_the_marks_of_the_own_family_are_read(text: str, form: Any) -> None:
    assert kinds(episode(written(text, "x = 1", form=form))) == []


def test_a_call_that_prose_goes_on_after_is_told_of_and_not_made() -> None:
    assert kinds(episode(says(f"{ABROAD}\nis what the client sends."))) == []


@pytest.mark.parametrize("text", [ABROAD, "<function=read_file>", '<invoke name="read_file">'])
def test_a_call_in_a_format_of_elsewhere_is_found(text: str) -> None:
    one = episode(says(text))
    assert kinds(one) == ["wrong_call_format"]
    assert not is_mended(one, "wrong_call_format", says(text))
    assert is_mended(one, "wrong_call_format", says("", call("read_file", path="a.py")))


@pytest.mark.parametrize(
    "said",
    [
        says(ABROAD.replace("read_file", "print")),
        says('The config has {"name": "read_file", "value": 1}.'),
        says(f"<think>{ABROAD}</think>Done."),
        says(ABROAD, call("read_file", "text", path="a.py")),
    ],
)
def test_what_calls_no_tool_or_does_so_well_has_no_wrong_format(said: Any) -> None:
    assert "wrong_call_format" not in kinds(episode(said))


def test_a_summary_may_quote_a_call() -> None:
    one = episode(says(ABROAD, is_summary=True), says("Done."))
    assert kinds(one) == []
