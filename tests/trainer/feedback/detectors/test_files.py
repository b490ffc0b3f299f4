from typing import Any

from tests.trainer.feedback.checks import facts, found, is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says

LISTED = says("", call("list_files", "src/pkg/core.py\nsrc/pkg/io.py\ntests/test_core.py"))


def missing(path: str, *, tool: str = "read_file", **more: Any):
    text = f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"
    return says("", call(tool, text, ok=False, path=path, **more))


def unmatched(path: str, num: int):
    text = f"ValueError: `old` must stand exactly once in {path}, it stands {num} times"
    return says("", call("edit_file", text, ok=False, path=path, old="x = 1", new="x = 2"))


def test_a_path_that_does_not_exist_and_was_never_shown_is_found_with_those_near() -> None:
    one = episode(LISTED, missing("/work/pkg/core.py"))
    assert found(one, "missing_file").reply == 1
    assert facts(one, "missing_file")["paths"][0] == "src/pkg/core.py"
    assert facts(one, "missing_file")["listing"] == ["list_files", "search"]


def test_the_same_path_again_mends_nothing_and_another_does() -> None:
    one = episode(LISTED, missing("pkg/core.py"))
    assert not is_mended(one, "missing_file", says("", call("read_file", path="pkg/core.py")))
    assert is_mended(one, "missing_file", says("", call("read_file", path="src/pkg/core.py")))


def test_a_guess_is_free_and_the_same_one_again_is_not() -> None:
    assert kinds(episode(missing("core.py"))) == []
    assert kinds(episode(missing("core.py"), missing("lib/core.py"))) == []
    two = episode(missing("core.py"), missing("./core.py"))
    assert found(two, "missing_file").reply == 1


def test_only_a_whole_list_of_its_folder_tells_that_a_file_is_not_there() -> None:
    def listed(output: str, **path: str):
        return says("", call("list_files", output, **path))

    for said in (
        listed("pkg/io.py", path="pkg"),
        listed("pkg/io.py", path="/work/pkg/"),
        listed("", path="pkg"),
        listed("setup.py"),
    ):
        assert kinds(episode(said, missing("pkg/core.py"))) == ["missing_file"]
    for said in (
        listed("docs/index.md", path="docs"),
        listed("pkg_2/io.py", path="pkg_2"),
        listed("pkg/io.py\n… 900 more characters"),
        says("", call("search", "pkg/io.py:1: core", text="core")),
        says("", call("run_command", "pkg\nexit status 0", command="ls")),
    ):
        assert kinds(episode(said, missing("pkg/core.py"))) == []
    assert kinds(episode(listed("setup.py"), missing(".github/workflows/ci.yml"))) == []
    assert kinds(episode(listed("setup.py"), missing("/etc/core.py"))) == []


def test_what_a_call_may_have_put_there_since_is_worth_a_look() -> None:
    made = says("", call("run_command", "exit status 0", command="python generate.py"))
    looked = says("", call("run_command", "a\nexit status 0", command="ls -la | head"))
    assert kinds(episode(LISTED, made, missing("out.json"))) == []
    assert kinds(episode(LISTED, looked, missing("out.json"))) == ["missing_file"]


def test_what_another_context_or_the_same_reply_was_told_does_not_count() -> None:
    summed_up = says("So far I looked around.", is_summary=True)
    assert kinds(episode(LISTED, summed_up, missing("out.json"))) == []
    text = "FileNotFoundError: [Errno 2] No such file or directory: 'a.py'"
    pair = call("read_file", text, ok=False, path="a.py")
    assert kinds(episode(says("", pair, pair))) == []


def test_another_path_that_the_list_does_not_hold_mends_nothing() -> None:
    one = episode(LISTED, missing("pkg/core.py"))
    assert not is_mended(one, "missing_file", says("", call("read_file", path="lib/core.py")))


def test_a_path_that_was_shown_and_is_gone_is_no_fault() -> None:
    gone = says("", call("delete_files", "deleted: src/pkg/io.py", paths=["src/pkg/io.py"]))
    assert kinds(episode(LISTED, gone, missing("src/pkg/io.py"))) == []
    traceback = says(
        "", call("run_command", "File 'pkg/cli.py'\nexit status 1", ok=False, command="x")
    )
    assert kinds(episode(traceback, missing("src/pkg/cli.py"))) == []


def test_a_file_that_is_written_need_not_exist() -> None:
    text = "PermissionError: [Errno 13] Permission denied: 'new.py'"
    assert (
        kinds(episode(says("", call("write_file", text, ok=False, path="new.py", content=""))))
        == []
    )


def test_an_edit_that_matches_nothing_is_found_and_says_how_the_file_is_known() -> None:
    read = says("", call("read_file", "x = 0\n", path="a.py"))
    edited = says("", call("edit_file", "edited: a.py", path="./a.py", old="x", new="y"))
    states = {
        "unread": episode(unmatched("a.py", 0)),
        "read": episode(read, unmatched("a.py", 0)),
        "changed": episode(read, edited, unmatched("a.py", 0)),
    }
    for state, one in states.items():
        assert found(one, "edit_without_match").facts["state"] == state
    assert found(episode(unmatched("a.py", 2)), "edit_without_match").facts["places"] == 2


def test_an_edit_that_failed_otherwise_or_went_well_is_no_edit_without_match() -> None:
    well = says("", call("edit_file", "edited: a.py", path="a.py", old="x", new="y"))
    text = "ValueError: embedded null byte"
    other = says("", call("edit_file", text, ok=False, path="a\0", old="x", new="y"))
    assert kinds(episode(well)) == kinds(episode(other)) == []


def test_the_same_edit_again_mends_nothing_and_reading_the_file_does() -> None:
    one = episode(unmatched("a.py", 0))
    same = says("", call("edit_file", path="a.py", old="x = 1", new="x = 2"))
    assert not is_mended(one, "edit_without_match", same)
    assert is_mended(one, "edit_without_match", says("", call("read_file", path="a.py")))
