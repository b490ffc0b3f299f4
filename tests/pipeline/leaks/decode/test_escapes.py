"""Texts come out of the escapes, encodings and marks that they are wrapped in."""

import base64
import difflib
import json
import pickle

import pytest

from tests.pipeline.leaks.planted import SECRET, texts_of, verdict_on, ways_to_body

LINES = SECRET.decode().splitlines(keepends=True)


def notebook() -> bytes:
    cell = {"cell_type": "code", "source": LINES, "outputs": []}
    return json.dumps({"cells": [cell], "nbformat": 4}, indent=1).encode()


def source_map() -> bytes:
    return json.dumps({"version": 3, "sourcesContent": [SECRET.decode()]}).encode()


@pytest.mark.parametrize("data", [notebook(), source_map(), notebook()[:-60]])
def test_strings_of_json_are_read_even_from_a_broken_file(data: bytes) -> None:
    assert ("json",) in ways_to_body(verdict_on(data))


def test_a_notebook_in_a_json_string_is_read() -> None:
    data = json.dumps({"file": notebook().decode()}).encode()
    assert any("json" in way and len(way) == 2 for way in ways_to_body(verdict_on(data)))


@pytest.mark.parametrize(
    "quoted",
    [repr(SECRET.decode()), json.dumps(SECRET.decode()), pickle.dumps(SECRET.decode(), 0).decode()],
)
def test_a_string_literal_in_other_text_is_read(quoted: str) -> None:
    data = f"# a recorded answer\nANSWER = {quoted}\n".encode()
    assert ("escapes",) in ways_to_body(verdict_on(data))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_letters_are_read(encoding: str) -> None:
    assert ways_to_body(verdict_on(SECRET.decode().encode(encoding))) == [(encoding[:6],)]


def test_letters_outside_of_ascii_survive() -> None:
    text = "naïve — 数\n" * 9
    assert text.encode() in texts_of(text.encode("utf-16"))
    assert any("数".encode() in it for it in texts_of(json.dumps({"a": text}).encode())[1:])


def test_the_lines_of_a_diff_are_read_without_their_marks() -> None:
    diff = "".join(difflib.unified_diff([], LINES, "a/units.py", "b/units.py"))
    assert ("diff",) in ways_to_body(verdict_on(diff.encode()))


def test_a_file_in_a_data_address_is_read() -> None:
    packed = base64.b64encode(source_map())
    data = b"x=1;\n//# sourceMappingURL=data:application/json;base64," + packed + b"\n"
    (way,) = ways_to_body(verdict_on(data))
    assert [it.partition("@")[0] for it in way] == ["base64", "json"]


def test_a_plain_text_is_one_piece() -> None:
    assert texts_of(b"x = 1\nprint('<b>', \"a\")\n") == [b"x = 1\nprint('<b>', \"a\")\n"]


def test_quotes_without_end_take_no_time() -> None:
    data = b"[" + b'"\\n\\"' * 100_000
    assert len(texts_of(data)) == 2
