from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says
from trainer.feedback.linter import violations
from trainer.feedback.scan import scan

KIND = "style_regression"
BEFORE = "import re\n\n\ndef f(x):\n    return re.sub('a', 'b', x)\n"
READ = says("", call("read_file", BEFORE, path="a.py"))


def edit(old: str, new: str, *, path: str = "a.py"):
    return says("", call("edit_file", f"edited: {path}", path=path, old=old, new=new))


UNUSED = edit("import re\n", "import os\nimport re\n")
BARE = edit("return re", "if x == None:\n        return x\n    return re")


def test_an_edit_that_leaves_a_new_fault_is_found_by_its_rules() -> None:
    one = episode(READ, BARE)
    finding = found(one, "style_regression")
    assert finding.facts == {"path": "a.py", "rules": ["E711"]}
    assert finding.evidence.startswith("a.py:5: E711")
    good = "if x is None:\n        return x\n    return re"
    mended = says("", call("edit_file", path="a.py", old="return re", new=good))
    assert is_mended(one, "style_regression", mended)
    again = says(
        "", call("edit_file", path="a.py", old="return re", new="f == None\n    return re")
    )
    assert not is_mended(one, "style_regression", again)


def test_what_a_later_edit_mends_is_no_fault() -> None:
    used = edit("return re", "print(os.sep)\n    return re")
    assert kinds(episode(READ, UNUSED, used)) == []
    assert kinds(episode(READ, UNUSED)) == ["style_regression"]


def test_a_fault_that_was_there_before_is_not_the_edits() -> None:
    read = says("", call("read_file", "import os\nx = 1\n", path="a.py"))
    assert kinds(episode(read, edit("x = 1", "x = 2"))) == []


def test_a_file_that_python_cannot_read_any_more_is_found() -> None:
    one = episode(READ, edit("def f(x):", "def f(x:"))
    assert found(one, "style_regression").facts["rules"] == ["invalid-syntax"]


def test_a_file_that_is_not_known_to_the_letter_is_left_alone() -> None:
    part = says("", call("read_file", BEFORE, path="a.py", first_line=1, num_lines=9))
    cut = says("", call("read_file", f"{BEFORE}\n… 90 more characters", path="a.py"))
    shell = says("", call("run_command", "exit status 0", command="black a.py"))
    for said in ([BARE], [part, BARE], [cut, BARE], [READ, shell, BARE]):
        assert kinds(episode(*said)) == []


def test_other_languages_and_reexports_are_left_alone() -> None:
    read = says("", call("read_file", "import re\n", path="a/__init__.py"))
    assert kinds(episode(read, edit("re", "os", path="a/__init__.py"))) == []
    text = says("", call("read_file", "x\n", path="a.txt"))
    assert kinds(episode(text, edit("x", "def f(", path="a.txt"))) == []


def shell(command: str):
    return says("", call("run_command", "exit status 0", command=command))


def test_what_a_command_may_have_mended_is_no_fault() -> None:
    for command in ("ruff check --fix .", "sed -i /os/d a.py", "git checkout a.py", "black ."):
        assert kinds(episode(READ, UNUSED, shell(command))) == []
    for command in ("cat a.py", "python -m pytest -q 2>&1 | tail -5", "git diff"):
        assert kinds(episode(READ, UNUSED, shell(command))) == ["style_regression"]


def test_a_file_that_is_read_again_tells_whether_the_fault_is_left() -> None:
    mended = says("", call("read_file", BEFORE, path="a.py"))
    left = says(
        "", call("read_file", BEFORE.replace("import re", "import os\nimport re"), path="a.py")
    )
    assert kinds(episode(READ, UNUSED, shell("python tidy.py"), mended)) == []
    assert kinds(episode(READ, UNUSED, shell("python tidy.py"), left)) == ["style_regression"]


def test_a_file_that_is_deleted_has_no_style() -> None:
    gone = says("", call("delete_files", "deleted: a.py", paths=["a.py"]))
    assert kinds(episode(READ, UNUSED, gone)) == []


def test_a_file_whose_text_before_is_not_known_is_not_shown_to_the_linter() -> None:
    violations.cache_clear()
    new = says("", call("write_file", "written: b.py", path="b.py", content="import os\n"))
    assert kinds(episode(new)) == []
    assert violations.cache_info().misses == 0


def test_of_two_edits_the_one_whose_fault_is_left_is_found() -> None:
    used = edit("    return re", "    print(os.sep)\n    return re")
    other = edit("import re\n", "import re\nimport sys\n")
    (finding,) = [it for it in scan(episode(READ, UNUSED, used, other)) if it.kind == KIND]
    assert (finding.reply, "`sys`" in finding.evidence) == (3, True)


def test_a_comparison_that_builds_an_expression_and_a_name_passed_on_are_meant() -> None:
    read = says("", call("read_file", "import pandas as pd\nx = pd.NA\n", path="a.py"))
    assert kinds(episode(read, edit("x = pd.NA", "x = pd.NA == None"))) == []
    read = says("", call("read_file", "import a\na.b()\n", path="a.py"))
    assert kinds(episode(read, edit("import a", "from .core import b\nimport a"))) == []
