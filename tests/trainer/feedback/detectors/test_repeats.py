from typing import Any

import pytest

from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import TOOLS, call, episode, says, tool

READ = says("", call("read_file", "x = 1", path="a.py"))
EDIT = says("", call("edit_file", "edited: a.py", path="a.py", old="1", new="2"))
FAILS = says("", call("run_tests", "1 collected, 1 failed\nFAILED t.py::test: E"))
PYTEST = says(
    "", call("run_command", "1 failed in 0.1s\nexit status 1", ok=False, command="python -m pytest")
)
SHELL = says("", call("run_command", "a\nexit status 0", command="ls"))
SED = says("", call("run_command", "exit status 0", command="sed -i s/a/b/ a.py"))


def test_the_same_look_with_nothing_changed_is_found() -> None:
    one = episode(READ, says("Hm.", call("search", "", text="y")), READ)
    assert found(one, "repeated_call").reply == 2
    assert not is_mended(one, "repeated_call", says("", call("read_file", path="a.py")))
    assert is_mended(one, "repeated_call", says("", call("read_file", path="b.py")))


def test_the_order_of_arguments_does_not_make_another_call() -> None:
    one = says("", call("search", "a.py:1: x", text="x", path="."))
    other = says("", call("search", "a.py:1: x", path=".", text="x"))
    assert kinds(episode(one, other)) == ["repeated_call"]


def test_after_an_edit_or_a_command_a_look_is_no_repeat() -> None:
    assert kinds(episode(READ, EDIT, READ)) == []
    assert kinds(episode(READ, SED, READ)) == []
    assert kinds(episode(READ, SHELL, READ)) == ["repeated_call"]


def test_another_answer_or_another_context_makes_no_repeat() -> None:
    other = says("", call("read_file", "x = 2", path="a.py"))
    assert kinds(episode(READ, other)) == []
    assert kinds(episode(READ, says("So far: read a.py.", is_summary=True), READ)) == []


def test_two_equal_calls_of_one_reply_are_no_repeat() -> None:
    pair = call("read_file", "x = 1", path="a.py")
    assert kinds(episode(says("", pair, pair))) == []


def test_a_run_may_be_repeated_once_and_not_twice() -> None:
    assert kinds(episode(FAILS, FAILS)) == []
    assert kinds(episode(FAILS, FAILS, FAILS)) == ["repeated_call"]
    assert kinds(episode(SHELL, SHELL)) == []
    assert kinds(episode(SHELL, SHELL, SHELL)) == ["repeated_call"]
    assert kinds(episode(FAILS, EDIT, FAILS, EDIT, FAILS)) == []


@pytest.mark.parametrize("run", [FAILS, PYTEST])
def test_a_run_after_each_edit_is_no_repeat_whoever_edits(run: Any) -> None:
    for edit in (EDIT, SED):
        assert kinds(episode(run, edit, run, edit, run, edit, run)) == []


@pytest.mark.parametrize(
    "command",
    ["sed -i s/a/b/ a.py", "echo x >> a.txt", "python step.py", "git stash pop", "patch < a.diff"],
)
def test_a_command_that_changes_something_may_be_given_again_and_again(command: str) -> None:
    for status in (0, 1):
        output = f"exit status {status}"
        said = says("", call("run_command", output, ok=not status, command=command))
        assert kinds(episode(said, said, said, said)) == []


def test_a_tool_that_is_not_known_repeats_itself_only_when_it_fails() -> None:
    well = says("", call("next_page", "page", number=1))
    bad = says("", call("next_page", "no page", ok=False, number=1))
    tools = (*TOOLS, tool("next_page", number="integer"))
    assert kinds(episode(well, well, well, tools=tools)) == []
    assert kinds(episode(bad, bad, tools=tools)) == []
    assert kinds(episode(bad, bad, bad, tools=tools)) == ["repeated_call"]
