"""Edits, made one after another as the edit tool makes them, turn the old text into the new."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.edits import edits_between

# Few different lines, so that they repeat; odd line ends and characters among them.
LINES = st.sampled_from([
    "a\n",
    "b\n",
    "aa\n",
    "\n",
    "  a\n",
    "\r\n",
    "\x0c\n",
    "é\u2028\n",
    "\udcff\n",
])
TEXTS = st.builds(
    lambda lines, end: "".join(lines) + end, st.lists(LINES), st.sampled_from(["", "a"])
)


def make(edits: tuple[tuple[str, str], ...], text: str) -> str:
    for old, new in edits:
        assert old
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@given(old=TEXTS.filter(bool), new=TEXTS)
def test_edits_turn_any_text_into_any_other(old: str, new: str):
    assert make(edits_between(old, new), old) == new


@given(old=st.text(min_size=1), new=st.text())
def test_edits_work_on_texts_without_lines(old: str, new: str):
    assert make(edits_between(old, new), old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A snippet that overlaps itself stands at two places.
        ("a\na\na\n", "a\nb\n"),
        ("x\n\n\n\ny\n", "x\n\n\nz\ny\n"),
        ("a\n", "a\na\n"),
        ("a", ""),
    ],
)
def test_edits_find_their_place_among_equal_lines(old: str, new: str):
    assert make(edits_between(old, new), old) == new


def test_equal_texts_need_no_edit():
    assert edits_between("a\nb\n", "a\nb\n") == ()


def test_an_edit_holds_little_more_than_what_changes():
    old = "".join(f"line {number}\n" for number in range(100))
    new = old.replace("line 40\n", "").replace("line 70\n", "line seventy\n")
    assert edits_between(old, new) == (("line 70\n", "line seventy\n"), ("line 40\n", ""))
