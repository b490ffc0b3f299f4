from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says

NO_MATCH = "ValueError: `old` must stand exactly once in a.py, it stands 0 times"
LOST = call("edit_file", NO_MATCH, ok=False, path="a.py", old="1", new="2")
DONE = call("edit_file", "edited: a.py", path="a.py", old="3", new="4")
SILENT = says("I changed the default.")


def test_the_end_right_after_a_change_that_failed_is_found() -> None:
    one = episode(says("", LOST), SILENT)
    assert found(one, "tool_error_ignored").reply == 1
    assert is_mended(one, "tool_error_ignored", says("", call("read_file", path="a.py")))
    assert is_mended(one, "tool_error_ignored", says("The change is not in place."))
    assert not is_mended(one, "tool_error_ignored", says("All is well."))


def test_a_call_that_was_never_carried_out_counts_too() -> None:
    lost = call("write_file", "TypeError: write_file() got", ok=False, path="a.py", text="")
    assert kinds(episode(says("", lost), SILENT)) == ["schema_invalid", "tool_error_ignored"]


def test_what_a_tool_that_is_not_there_was_to_do_is_not_known() -> None:
    lost = call("finish", "there is no tool 'finish'", ok=False)
    assert kinds(episode(says("", lost), SILENT)) == ["unknown_tool"]


def test_a_change_that_is_there_already_is_not_lost() -> None:
    again = call("edit_file", "edited: a.py", path="a.py", old="1", new="2")
    gone = call("delete_files", "FileNotFoundError: [Errno 2] 'x'", ok=False, paths=["x"])
    assert kinds(episode(says("", again), says("", LOST), SILENT)) == [
        "edit_without_match",
        "tests_never_run",
    ]
    assert kinds(episode(says("", gone), SILENT)) == []


def test_an_error_that_is_owned_up_to_mended_or_of_a_look_is_not_ignored() -> None:
    missing = "FileNotFoundError: [Errno 2] No such file or directory: 'b.py'"
    for said in (
        [says("", LOST), says("I could not change the default.")],
        [says("", LOST), says("", DONE), SILENT],
        [says("", LOST, DONE), SILENT],
        [says("", call("read_file", missing, ok=False, path="b.py")), SILENT],
        [says("", call("run_command", "exit status 1", ok=False, command="grep x a")), SILENT],
        [says("", LOST)],
    ):
        assert "tool_error_ignored" not in kinds(episode(*said))


def test_an_error_that_did_no_harm_is_not_ignored() -> None:
    one = episode(says("", LOST), SILENT, verdict="solved", reward=1.0)
    assert kinds(one) == ["edit_without_match"]
