from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says

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


def test_a_comment_that_thinks_aloud_is_found() -> None:
    one = episode(edit("x", "x  # Wait, let me check this"))
    assert kinds(one) == ["loud_comment"]
    assert not is_mended(one, "loud_comment", edit("x", "x\n# I think it is fine\n"))
    assert is_mended(one, "loud_comment", edit("x", "x  # of the whole tree"))


def test_comments_that_tell_were_there_or_stand_elsewhere_are_no_thoughts() -> None:
    for said in (
        edit("x", "x  # waits for the lock, let callers decide"),
        edit("# hmm, odd\nx", "# hmm, odd\ny"),
        edit("x", "# Wait, let me think", path="notes.md"),
        edit("x", "y = 'I think # of it'"),
    ):
        assert kinds(episode(said)) == []
