from typing import Any

import pytest

from tests.trainer.feedback.episodes import broken, call, fault
from trainer.feedback.acts import Act, plain_path


def act(pair: Any) -> Act:
    made, result = pair
    return Act(turn=0, call=made, result=result)


@pytest.mark.parametrize(
    ("pair", "status"),
    [
        (call("read_file", "text", path="a"), "done"),
        (call("read_file", "the call died with status 1: ", path="a"), "done"),
        (call("read_file", "PermissionError: no", ok=False, path="a"), "failed"),
        (call("run_command", "exit status 1", ok=False, command="x"), "failed"),
        (call("run_command", "TypeError: x\nexit status 1", ok=False, command="x"), "failed"),
        (call("run_command", "the call died with status 1", ok=False, command="x"), "failed"),
        (call("run_command", "`command` is '', expected a text", ok=False, command=""), "refused"),
        (call("read_file", "TypeError: read_file() got", ok=False), "refused"),
        (call("read", "there is no tool 'read'", ok=False), "refused"),
        (broken("{"), "refused"),
        (call("read_file", "the workbench is closed", ok=False, path="a"), "fault"),
        (fault("run_command", "exit status 0", command="x"), "fault"),
        (call("read_file", path="a"), "unanswered"),
    ],
)
def test_what_became_of_a_call_is_told_from_its_result(pair: Any, status: str) -> None:
    assert act(pair).status == status


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (call("search", "", text="x"), False),
        (call("run_tests", "1 collected, 1 passed"), False),
        (call("edit_file", "ValueError: no", ok=False, path="a"), False),
        (call("read", "there is no tool 'read'", ok=False), False),
        (call("edit_file", "edited: a", path="a"), True),
        (call("run_command", "exit status 1", ok=False, command="x"), True),
        (call("run_command", "exit status 0", command="git diff | cat"), False),
        (call("delete_files", "FileNotFoundError: 'b'", ok=False, paths=["a", "b"]), True),
        (call("fly", "up"), True),
        (call("edit_file", path="a"), True),
    ],
)
def test_files_may_be_others_after_a_call_unless_it_cannot_have_changed_any(
    pair: Any, expected: bool
) -> None:
    assert act(pair).may_change is expected


def test_paths_are_those_below_the_work_tree() -> None:
    edits = [{"path": "./b.py"}, {"old": "x"}, 3]
    assert act(call("edit_files", edits=edits, path="/work/a/../a.py")).paths == ("a.py", "b.py")
    assert act(call("delete_files", paths=["a", 3, "b/"])).paths == ("a", "b")
    assert act(call("read_file", path=7)).paths == act(broken("{")).paths == ()
    assert plain_path("") == plain_path("/work/") == "."
