import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.leaks.normalise import (
    plain_text,
    printable_runs,
    quoted_apart,
    without_brace_comments,
    without_hash_comments,
    without_listing,
)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (b"a = 1  # one\nb = 2", b"a = 1  \nb = 2"),
        (b'url = "x#y"  # not a comment inside', b'url = "x#y"  '),
        (b"t = '''\n# kept\n'''  # cut", b"t = '''\n# kept\n'''  "),
        (rb's = "\"#"  # cut', rb's = "\"#"  '),
    ],
)
def test_python_comments_go_and_strings_stay(text: bytes, bare: bytes) -> None:
    assert without_hash_comments(text) == bare


def test_comments_between_braces_go_and_strings_stay() -> None:
    text = b'int a; // one\nString s = "http://x"; /* two\n lines */ int b;'
    assert without_brace_comments(text) == b'int a; \nString s = "http://x";  int b;'


def test_many_comments_that_never_end_take_no_time_that_grows_with_the_square() -> None:
    text = b"dir/* " * 20_000 + b'"' * 20_001 + rb"\"\`" * 100_000 + b"# x"
    assert without_brace_comments(text).startswith(b"dir/* ")
    assert without_hash_comments(text).startswith(b"dir/* ")


def test_what_grep_writes_before_lines_goes() -> None:
    assert without_listing(b"src/a.py:12:    x = 1\nsrc/a.py-13-    y") == b"    x = 1\n    y"


def test_typeset_punctuation_and_the_byte_order_mark_part_words() -> None:
    typeset = "\ufeffdoesn\u2019t\u00a0\u201cwork\u201d".encode()
    assert plain_text(typeset).split() == [b"doesn", b"t", b"work"]


def test_printable_runs_and_quoted_texts_stand_on_lines_of_their_own() -> None:
    assert printable_runs(b"\x00one two\xff\x01three") == b"one two\nthree"
    assert b"unknown unit" in quoted_apart(b"raise E('unknown unit')").split(b"\n")


@given(data=st.lists(st.sampled_from([b"\0", b"\xff", b"a", b"\t", b"word", b"\n"])).map(b"".join))
def test_runs_of_at_least_three_are_kept_with_the_break_behind_them(data: bytes) -> None:
    plain = re.findall(rb"[\t -~]{3,}[^\t -~]?", data)
    assert printable_runs(data) == re.sub(rb"[^\t -~]", b"\n", b"".join(plain))


def test_a_run_is_whole_wherever_bytes_are_looked_at_in_one_go() -> None:
    for size in range(2**16 - 8, 2**16 + 3):
        assert printable_runs(bytes(size) + b"sourdough\0") == b"sourdough\n"


# What is cut is told alone; all that stands between is told in one go by the real patterns.
PLAIN_HASH = re.compile(
    rb'(\\.|"""(?:[^\\]|\\.){0,20000}?"""|\'\'\'(?:[^\\]|\\.){0,20000}?\'\'\''
    rb'|"(?:[^"\\\n]|\\.){0,1000}"|\'(?:[^\'\\\n]|\\.){0,1000}\')|#[^\n]*',
    re.DOTALL,
)
PLAIN_BRACES = re.compile(
    rb'(\\.|"(?:[^"\\\n]|\\.){0,1000}"|\'(?:[^\'\\\n]|\\.){0,1000}\'|`(?:[^`\\]|\\.){0,4000}`)'
    rb"|//[^\n]*|/\*.{0,4000}?\*/",
    re.DOTALL,
)
CODE = st.text("\"'`\\#/*\n a", max_size=60).map(str.encode)


@given(text=CODE)
def test_comments_are_cut_as_the_plain_patterns_cut_them(text: bytes) -> None:
    assert without_hash_comments(text) == PLAIN_HASH.sub(rb"\1", text)
    assert without_brace_comments(text) == PLAIN_BRACES.sub(rb"\1", text)
