import ast
import textwrap

import pytest

from pipeline.leaks.code import anchors_of
from pipeline.leaks.python_prints import outlines_of, shape_key
from pipeline.leaks.shapes import shapes_in

ORIGINAL = '''\
def weigh(items, *, unit="g"):
    """Add up weights."""
    total = 0.0
    for item in items:
        total += item.grams / factor(unit)
    return round(total, ndigits=2)
'''
RENAMED = """\
async def other(): ...

class Scale:
    @staticmethod
    def weigh(
        things: list[Thing], *, scale: str = "g"
    ) -> float:
        sum_ = 0.0   # a comment
        for thing in things:
            sum_ += (
                thing.grams / factor(scale)
            )
        return round(sum_, ndigits=2)

    x = 1
"""


def key_of(text: str) -> int:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return shape_key(node)


def test_a_function_is_known_by_what_it_does_under_other_local_names() -> None:
    assert list(shapes_in(RENAMED.encode(), {b"weigh": [()]})) == [key_of(ORIGINAL)]


@pytest.mark.parametrize(
    ("old", "new"),
    [("grams", "ounces"), ("/", "*"), ("ndigits=2", "ndigits=3"), ("round(", "floor(")],
)
def test_a_function_that_does_something_else_has_another_shape(old: str, new: str) -> None:
    assert key_of(ORIGINAL.replace(old, new)) != key_of(ORIGINAL)


def test_the_name_of_a_keyword_is_not_local_even_if_a_local_is_called_so() -> None:
    one = "def f(a):\n    return g(a=a)\n"
    other = "def f(b):\n    return g(a=b)\n"
    assert key_of(one) == key_of(other)


def test_a_function_is_found_in_a_piece_of_a_module() -> None:
    piece = "    return 1\n\n" + textwrap.indent(ORIGINAL, "        ") + "\n    ) what follows [\n"
    assert list(shapes_in(piece.encode(), {b"weigh": [()]})) == [key_of(ORIGINAL)]


def test_functions_of_other_names_and_texts_that_do_not_parse_are_passed_over() -> None:
    assert list(shapes_in(ORIGINAL.encode(), {b"other": [()]})) == []
    assert list(shapes_in(b"def weigh(items:\n    total = (\n", {b"weigh": [()]})) == []
    deep = b"def weigh(a):\n    return " + b"+".join([b"a"] * 5000)
    assert list(shapes_in(deep, {b"weigh": [()]})) == []


def test_a_function_of_another_outline_is_not_looked_at_closely() -> None:
    shape = key_of(ORIGINAL)
    own, other = outlines_of([shape]), outlines_of([key_of("def weigh(a):\n    a.b()\n")])
    assert own != other
    assert list(shapes_in(RENAMED.encode(), {b"weigh": [()]}, outlines=own)) == [shape]
    assert list(shapes_in(RENAMED.encode(), {b"weigh": [()]}, outlines=other)) == []


def test_names_that_are_not_its_own_stand_in_every_copy_of_a_function() -> None:
    node = ast.parse(ORIGINAL).body[0]
    assert isinstance(node, ast.FunctionDef)
    assert anchors_of(node) == ("ndigits", "factor", "grams", "round")
    words = tuple(name.encode() for name in anchors_of(node))
    assert list(shapes_in(RENAMED.encode(), {b"weigh": [words]})) == [key_of(ORIGINAL)]


def test_a_function_without_the_words_of_any_that_is_wanted_is_not_parsed() -> None:
    wanted = {b"weigh": [(b"ounces",), (b"grams", b"pounds")]}
    assert list(shapes_in(RENAMED.encode(), wanted)) == []
    assert list(shapes_in(RENAMED.encode(), {b"weigh": [*wanted[b"weigh"], (b"grams",)]}))
