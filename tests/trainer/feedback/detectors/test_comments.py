import pytest

from tests.trainer.feedback.checks import is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says


def edit(old: str, new: str, *, path: str = "a.py"):
    return says("", call("edit_file", f"edited: {path}", path=path, old=old, new=new))


def tried(new: str):
    """A call that nobody has carried out."""
    return says("", call("edit_file", path="a.py", old="x", new=new))


def test_a_comment_that_thinks_aloud_is_found() -> None:
    one = episode(edit("x", "x  # Wait, let me check this"))
    assert kinds(one) == ["loud_comment"]
    assert not is_mended(one, "loud_comment", tried("x\n# I think it is fine\n"))
    assert is_mended(one, "loud_comment", tried("x  # of the whole tree"))


def test_comments_that_tell_were_there_or_stand_elsewhere_are_no_thoughts() -> None:
    for said in (
        edit("x", "x  # waits for the lock, let callers decide"),
        edit("# hmm, odd\nx", "# hmm, odd\ny"),
        edit("x", "# Wait, let me think", path="notes.md"),
        edit("x", "y = 'I think # of it'"),
    ):
        assert kinds(episode(said)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "Wait, this is wrong",
        "wait... no",
        "Hmm",
        "Let me check whether it is sorted",
        "Actually, I should sort first",
        "I think that this is fine",
        "I'll come back to it",
        "Not sure why this is here",
        "On second thought: no",
    ],
)
def test_a_thought_is_read(comment: str) -> None:
    assert kinds(episode(edit("x", f"x  # {comment}"))) == ["loud_comment"]


@pytest.mark.parametrize(
    "comment",
    [
        "wait for the server to start",
        "Wait until the lock is free",
        "Wait 5 s",
        "let me_too be at least 3",
        "let callers decide",
        "i will be at most n",
        "i should be even here",
        "Actually, the standard allows both",
        "I/O errors are passed on",
        "I is the identity matrix",
    ],
)
def test_what_any_comment_says_is_no_thought(comment: str) -> None:
    assert kinds(episode(edit("x", f"x\n# {comment}"))) == []


def test_a_comment_that_is_gone_at_the_end_is_no_fault() -> None:
    thought = edit("x", "x  # Hmm, why?")
    assert kinds(episode(thought, edit("x  # Hmm, why?", "x"), patch="")) == []
    scratch = says("", call("write_file", "written: s.py", path="s.py", content="# Hmm\n"))
    gone = says("", call("delete_files", "deleted: s.py", paths=["s.py"]))
    assert kinds(episode(scratch, gone)) == []


def test_a_text_that_looks_like_a_comment_is_none() -> None:
    assert kinds(episode(edit("x", 'x = "# Wait, I think"'))) == []
    assert kinds(episode(edit("x", "x = f('a', '# Hmm')"))) == []
