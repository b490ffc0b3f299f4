from dataclasses import replace

import pytest

from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import broken, call, episode, fault, says, written

KIMI_MARK = "<|tool_call_argument_begin|>"
WELL = '{"name": "read_file", "arguments": {"path": "a.py"}}'


def test_what_the_environment_failed_is_its_own_fault_and_shuts_out_all_else_in_the_reply() -> None:
    bad = says("", fault("read_file", path="a.py"), call("no_such_tool", "no such tool", ok=False))
    assert kinds(episode(bad)) == ["environment_fault"]


def test_a_kernel_tool_that_dies_or_is_late_is_a_fault_though_nobody_marked_it() -> None:
    for text in ("the call died with status 137: ", "the call went over its limit of wall"):
        one = episode(says("", call("read_file", text, ok=False, path="a.py")))
        assert kinds(one) == ["environment_fault"]


def test_a_module_that_dies_when_it_is_imported_is_no_fault_of_the_environment() -> None:
    text = "the call died with status 1: "
    assert kinds(episode(says("", call("import_modules", text, ok=False, modules=["a"])))) == []


def test_a_command_that_ends_badly_is_no_fault_of_the_environment() -> None:
    assert (
        kinds(episode(says("", call("run_command", "exit status 1", ok=False, command="x")))) == []
    )


def test_a_fault_in_one_reply_leaves_the_others_as_they_are() -> None:
    bad = says("", call("no_such_tool", "there is no tool", ok=False))
    assert kinds(episode(says("", fault("read_file", path="a")), bad)) == [
        "environment_fault",
        "unknown_tool",
    ]


def test_a_well_written_call_that_was_not_read_is_the_parsers_fault() -> None:
    assert kinds(episode(says("", broken(WELL, name="read_file")))) == ["parser_fault"]


def test_a_name_in_a_wrapping_of_another_format_is_the_policys() -> None:
    for name in ("functions.read_file", "functions.read_file:0", "tool/read_file"):
        one = episode(says("", call(name, "there is no tool", ok=False, path="a.py")))
        assert kinds(one) == ["unknown_tool"], name


def test_a_name_left_in_its_own_formats_wrapping_is_the_parsers_fault() -> None:
    raw = 'functions.read_file:0<|tool_call_argument_begin|>{"path": "a.py"}'
    made, result = call("functions.read_file:0", "there is no tool", ok=False, path="a.py")
    text = f"<|tool_call_begin|>{raw}<|tool_call_end|>"
    assert kinds(episode(says(text, (replace(made, raw=raw), result)))) == ["parser_fault"]


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "read_file", "arguments": {"first_line": NaN}}',
        '{"name": "read_file", "arguments": {"first_line": 1e999}}',
        '{"name": "read_file", "arguments": {"path": "\\ud800"}}',
        '{"name": "read_file", "arguments": ' + "[" * 9000 + "]" * 9000 + "}",
        '{"name": "read_file", "arguments": ["a.py"]}',
    ],
)
def test_a_call_that_no_parser_takes_is_the_policys(body: str) -> None:
    text = f"<tool_call>{body}</tool_call>"
    assert kinds(episode(written(text, form="hermes"))) == ["malformed_arguments"]


def test_a_call_without_an_end_is_the_policys_however_whole_it_looks() -> None:
    kimi = f'<|tool_call_begin|>functions.read_file:0{KIMI_MARK}{{"path": "a.py"}}'
    for said in (written(f"<tool_call>{WELL}", form="hermes"), written(kimi, form="kimi")):
        assert said.calls[0].error == "the call has no end"
        assert kinds(episode(said)) == ["malformed_arguments"]


def test_a_call_that_was_carried_out_all_the_same_is_the_parsers_fault() -> None:
    assert kinds(episode(says("", call("new_tool", "well", path="a.py")))) == ["parser_fault"]


def test_a_broken_call_is_not_the_parsers_fault() -> None:
    for raw in (WELL[:-1], WELL.replace("read_file", "no_such_tool"), "[1]", ""):
        assert "parser_fault" not in kinds(episode(says("", broken(raw))))


def test_a_call_that_is_read_well_has_no_parsers_fault() -> None:
    one = episode(says("", broken(WELL, name="read_file")))
    assert is_mended(one, "parser_fault", says("", call("read_file", path="a.py")))
    assert not is_mended(one, "parser_fault", says("", broken(WELL, name="read_file")))
    faulty = episode(says("", fault("read_file", path="a.py")))
    assert is_mended(faulty, "environment_fault", says("", call("read_file", path="b.py")))


def test_an_episode_that_a_machine_failed_or_that_we_cut_has_no_findings() -> None:
    bad = episode(says("", call("no_such_tool", "there is no tool", ok=False)))
    assert kinds(bad) == ["unknown_tool"]
    assert kinds(replace(bad, reward=None, ending="infra")) == []
    assert kinds(replace(bad, reward=None, ending="cut")) == []
    assert found(bad, "unknown_tool").evidence == "no_such_tool"
