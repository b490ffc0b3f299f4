import pytest

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
    assert printable_runs(b"\x00one two\xff\x01three").split(b"\n") == [
        b"", b"one two", b"", b"three",
    ]  # fmt: skip
    assert b"unknown unit" in quoted_apart(b"raise E('unknown unit')").split(b"\n")
