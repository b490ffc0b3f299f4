"""What an agent's tools do in a work tree, and that nothing outside of it can be reached."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.agent.loop import (
    MAX_OUTPUT_CHARS,
    Done,
    ScriptedPolicy,
    read_transcript,
    run_agent,
    transcript_lines,
)
from pipeline.agent.tools import Answer, Call, Workbench
from pipeline.task.grade import Desk
from tests.pipeline.conftest import LIMITS, DeskFor, MakeTree

FILES = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def one():\n    return 1\n\n\ndef two():\n    return 1\n",
    "pkg/broken.py": "import nowhere\n",
    "pkg/exits.py": "raise SystemExit(0)\n",
    "pkg/long.py": "# x\n" * 300,
    "dos.txt": "one\r\ntwo\r\n",
    "bytes.txt": "th\udce9 \udcff\n",
    "feed.py": "a = 1\n\x0c\nb = 2\u2028c\n",
    ".hidden/file.py": "one",
    "test_core.py": "from pkg.core import one\ndef test_one(): assert one() == 1\n"
    "def test_two(): assert one() == 2, 'no'\n",
    "test_bad.py": "import nowhere\n",
}

Use = Callable[..., Answer]


def workbench_of(desk: Desk) -> Workbench:
    return Workbench(
        desk.tree,
        bench=desk.bench,
        bytecode=desk.bench.bytecode / "tree",
        sandbox=desk.sandbox,
        limits=LIMITS,
    )


@pytest.fixture(scope="module")
def desk(make_tree: MakeTree, desk_for: DeskFor) -> Desk:
    tree = make_tree(FILES)
    (tree / "out").symlink_to("/etc")
    (tree / "outside.txt").symlink_to(Path(__file__))
    return desk_for(tree, args=("--ignore=out",))


@pytest.fixture(scope="module")
def use(desk: Desk) -> Use:
    """Return a function that calls a tool in one work tree, shared by these tests."""
    bench = workbench_of(desk)
    return lambda tool, **arguments: bench.use(Call(thought="", tool=tool, arguments=arguments))


def test_listing_names_the_files_that_are_not_hidden(use: Use):
    names = use("list_files").output.split("\n")
    assert {"pkg/core.py", "dos.txt", "outside.txt"} <= set(names)
    assert not [name for name in names if name.startswith(("/", ".hidden", "out/"))]
    assert use("list_files", path="pkg").output.split("\n")[0] == "pkg/__init__.py"


def test_search_finds_lines_with_their_place(use: Use):
    answer = use("search", text="return 1")
    assert answer == Answer(
        ok=True, output="pkg/core.py:2: return 1\npkg/core.py:6: return 1", run=None
    )
    assert use("search", text="not there").output == ""
    assert use("search", text="# x").output.endswith("pkg/long.py:200: # x\n… and 100 more")


@pytest.mark.parametrize("path", ["pkg/core.py", "dos.txt", "bytes.txt", "feed.py"])
def test_a_file_is_read_as_it_is(use: Use, path: str):
    assert use("read_file", path=path).output == FILES[path]


def test_a_part_of_a_file_can_be_read(use: Use):
    part = use("read_file", path="pkg/core.py", first_line=2, num_lines=1)
    assert part.output == "    return 1\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "content"),
    [
        ("dos.txt", "two\r\n", "three\r\nfour\r\n", b"one\r\nthree\r\nfour\r\n"),
        ("bytes.txt", "th\udce9", "tea", b"tea \xff\n"),
        ("feed.py", "b = 2", "b = 3", "a = 1\n\x0c\nb = 3\u2028c\n".encode()),
    ],
)
def test_an_edit_changes_its_place_and_no_other_byte(
    use: Use, desk: Desk, path: str, old: str, new: str, content: bytes
):
    assert use("edit_file", path=path, old=old, new=new).ok
    assert (desk.tree / path).read_bytes() == content
    assert use("edit_file", path=path, old=new, new=old).ok
    assert (desk.tree / path).read_bytes() == FILES[path].encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(("old", "times"), [("return 1", 2), ("return 3", 0), ("", 42)])
def test_an_edit_without_a_place_of_its_own_is_refused(use: Use, desk: Desk, old: str, times: int):
    answer = use("edit_file", path="pkg/core.py", old=old, new="pass")
    assert not answer.ok
    if old:
        assert f"exactly once in pkg/core.py, it stands {times} times" in answer.output
    assert (desk.tree / "pkg/core.py").read_text() == FILES["pkg/core.py"]


def test_a_file_can_be_written_in_a_new_folder(use: Use, desk: Desk):
    assert use("write_file", path="new/deep/file.txt", content="a\r\n\udcff").ok
    assert (desk.tree / "new/deep/file.txt").read_bytes() == b"a\r\n\xff"
    assert use("write_file", path="new/deep/file.txt", content="").ok
    assert (desk.tree / "new/deep/file.txt").read_bytes() == b""


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("read_file", {"path": "gone.py"}, "FileNotFoundError"),
        ("read_file", {"path": "pkg"}, "IsADirectoryError"),
        ("read_file", {"path": "dos.txt/a"}, "NotADirectoryError"),
        ("read_file", {}, "TypeError"),
        ("read_file", {"path": "dos.txt", "colour": "red"}, "TypeError"),
        ("read_file", {"path": "nul\0"}, "ValueError"),
        ("edit_file", {"path": "gone.py", "old": "a", "new": "b"}, "FileNotFoundError"),
        ("write_file", {"path": "", "content": "a"}, "FileNotFoundError"),
        ("search", {"text": 7}, "TypeError"),
    ],
)
def test_a_wrong_call_is_an_answer_that_says_so(
    use: Use, tool: str, arguments: dict[str, object], error: str
):
    answer = use(tool, **arguments)
    assert not answer.ok
    assert answer.output.startswith(f"{error}: ")


def test_an_unknown_tool_is_an_answer_that_names_the_others(use: Use):
    answer = use("rm", path="/")
    assert not answer.ok
    assert answer.output.startswith("there is no tool 'rm', there are list_files, search, ")
    assert answer.output.endswith("run_tests, run_command")


@pytest.mark.parametrize(
    "path", ["../../root", str(Path(__file__)), "outside.txt", "../../proc/1/root/root/.profile"]
)
def test_a_path_out_of_the_tree_does_not_leave_the_sandbox(use: Use, path: str):
    assert not use("read_file", path=path).ok


def test_the_system_files_in_reach_are_the_sandboxs_own(use: Use):
    answers = {use("read_file", path=path).output for path in ("../etc/passwd", "out/passwd")}
    assert len(answers) == 1
    assert answers != {Path("/etc/passwd").read_text()}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "out/new", "../../usr/new", "/tools/file_tools.py"]
)
def test_nothing_outside_the_tree_can_be_written(use: Use, path: str):
    assert not use("write_file", path=path, content="x").ok


def test_modules_are_imported_one_by_one(use: Use):
    modules = ["pkg.core", "pkg.broken", "pkg.exits", "pkg.gone"]
    lines = use("import_modules", modules=modules).output.split("\n")
    assert lines == [
        "pkg.broken: ModuleNotFoundError: No module named 'nowhere'",
        "pkg.exits: SystemExit: 0",
        "pkg.gone: ModuleNotFoundError: No module named 'pkg.gone'",
    ]
    assert use("import_modules", modules=["pkg.core"]).output == "all import"


NOISE = {
    "says nothing": "import os; os._exit(0)",
    "answers for the tool": "import os; os.write(3, b'{\"ok\": true}'); os._exit(0)",
    "talks nonsense": "import os; os.write(3, b'[' * 100_000); os._exit(0)",
}


@pytest.mark.parametrize("code", NOISE.values(), ids=NOISE)
def test_a_module_that_ends_or_answers_for_the_tool_fails_the_call(use: Use, code: str):
    assert use("write_file", path="pkg/noise.py", content=code).ok
    answer = use("import_modules", modules=["pkg.noise"])
    assert not answer.ok
    assert answer.output.startswith("the call died with status 0")


def test_tests_are_run_and_summarised(use: Use, desk: Desk):
    answer = use("run_tests")
    assert answer.ok
    assert answer.output.split("\n") == [
        "2 collected, 1 failed, 1 passed",
        "DOES NOT COLLECT test_bad.py: ModuleNotFoundError: No module named 'nowhere'",
        "FAILED test_core.py::test_two: AssertionError",
    ]
    assert answer.run is not None
    assert len(answer.run.outcomes) == 2
    assert not list(desk.tree.rglob("__pycache__"))


def test_tests_can_be_chosen_or_only_collected(use: Use):
    one = use("run_tests", ids=["test_core.py::test_one"])
    assert one.output == "1 collected, 1 passed"
    assert use("run_tests", collect_only=True).output.split("\n")[0] == "2 collected"


@pytest.mark.parametrize("arguments", [{"names": []}, {"ids": "test_core.py::test_one"}])
def test_a_wrong_call_of_the_tests_says_so(use: Use, arguments: dict[str, object]):
    answer = use("run_tests", **arguments)
    assert (answer.ok, answer.run) == (False, None)
    assert "ids" in answer.output


def script(num_calls: int):
    for number in range(num_calls):
        thought = f"number {number}"
        answer = yield Call(thought=thought, tool="read_file", arguments={"path": "pkg/long.py"})
        assert answer.ok
    return Done(reason="", detail="")


def test_a_transcript_keeps_each_turn_and_survives_writing(desk: Desk):
    bench = workbench_of(desk)
    done, turns = run_agent(ScriptedPolicy(script(2)), bench, max_turns=5)
    assert done == Done(reason="", detail="")
    assert [turn.thought for turn in turns] == ["number 0", "number 1"]
    assert json.loads(turns[0].arguments) == {"path": "pkg/long.py"}
    assert len(turns[0].output) < MAX_OUTPUT_CHARS + 100
    assert read_transcript(transcript_lines(turns)) == turns


def test_a_policy_that_never_ends_is_out_of_turns(desk: Desk):
    bench = workbench_of(desk)
    done, turns = run_agent(ScriptedPolicy(script(9)), bench, max_turns=2)
    assert done == Done(reason="out_of_turns", detail="not done after 2 turns")
    assert len(turns) == 2


def test_a_finished_workbench_takes_no_call_and_gives_what_was_left(
    make_tree: MakeTree, desk_for: DeskFor
):
    tree = make_tree({"a.py": "old", "closed/b.py": "old"})
    bench = workbench_of(desk_for(tree))
    arguments: dict[str, object] = {"path": "a.py", "content": "new"}
    write = Call(thought="", tool="write_file", arguments=arguments)
    assert bench.use(write).ok
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "closed").chmod(0)
    left = bench.finish()
    assert left.files == {"a.py": b"new", "closed/b.py": b"old"}
    assert left.odd == {"link": "120000 /etc/passwd"}
    assert bench.use(write) == Answer(ok=False, output="the workbench is closed")
    assert bench.finish() == left
