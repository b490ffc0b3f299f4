"""A solver is shown the first half of what a test function expects."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.shorten import shorten

# By name: the function, and what is shown of it; None when it cannot be cut.
CASES = {
    "asserts": (
        b"def test():\n    a = 1\n    assert f(a)\n    b = 2\n    assert f(b)  # last\n\n\nx = 1\n",
        b"def test():\n    a = 1\n    assert f(a)\n\n\nx = 1\n",
    ),
    "three asserts": (
        b"def test():\n    assert f(1)\n    assert f(2)\n    assert f(3)\n",
        b"def test():\n    assert f(1)\n    assert f(2)\n",
    ),
    "exceptions": (
        b"def test():\n    with raises(E):\n        f(1)\n    with raises(E):\n        f(2)\n",
        b"def test():\n    with raises(E):\n        f(1)\n",
    ),
    "parameters": (
        b"@mark.parametrize('a', [1, 2,\n 3, ])\ndef test(a):\n    assert f(a)\n",
        b"@mark.parametrize('a', [1, 2, ])\ndef test(a):\n    assert f(a)\n",
    ),
    "named parameters": (
        b"@mark.parametrize('a', [1, 2], ids=['x', 'y'])\ndef test(a): assert f(a)\n",
        b"@mark.parametrize('a', [1], ids=['x'])\ndef test(a): assert f(a)\n",
    ),
    "names by a function": (
        b"@mark.parametrize('a', [1, 2], ids=str)\ndef test(a): assert f(a)\n",
        None,
    ),
    "unpacked parameters": (b"@mark.parametrize('a', [1, *b])\ndef test(a): assert f(a)\n", None),
    "one assert": (b"def test():\n    assert f(1)\n", None),
    "one line": (b"def test(): assert f(1); assert f(2)\n", None),
    "twice": (b"def test():\n    assert 1\n    assert 2\ndef test(): pass\n", None),
    "no Python": (b"def test(:\n", None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_half_of_a_test_is_shown(name: str):
    content, expected = CASES[name]
    assert shorten(content, ["test"]) == expected


def test_a_method_is_cut_and_its_neighbours_stay():
    before = b"class T:\n    def test(self):\n        assert f(1)\n        assert f(2)\n"
    after = b"\n    def test_more(self):\n        assert f(3)\n"
    shown = shorten(before + after, ["T", "test"])
    assert shown == b"class T:\n    def test(self):\n        assert f(1)\n" + after


@given(st.lists(st.sampled_from(["assert f({})", "x = {}", "check({})"]), min_size=1, max_size=12))
def test_what_is_shown_is_a_module_that_expects_half_as_much(body: list[str]):
    lines = [f"    {line.format(number)}\n" for number, line in enumerate(body)]
    num_asserts = sum("assert" in line for line in lines)
    shown = shorten(("def test():\n" + "".join(lines)).encode(), ["test"])
    if num_asserts < 2:
        assert shown is None
        return
    assert shown is not None
    ast.parse(shown)
    assert shown.count(b"assert") == (num_asserts + 1) // 2
