"""Symbols: which definitions a module has and what is known of each."""

import doctest

from pipeline.language.python import docstrings, text
from pipeline.language.python.symbols import Definition, Span, definitions_in
from pipeline.language.python.text import parse, split_lines

SOURCE = '''\
import functools
from typing import overload


@functools.cache
def area(side):
    """Multiply.

    Twice.
    """
    # why

    return (
        side * side
    )


async def fetch(): return 1


class Box(Base, Generic[T], metaclass=Meta):
    """A box."""

    limit: int = 3

    @property
    def size(self):
        return 1

    @size.setter
    def size(self, value):
        self._size = value

    def _hide(self): ...

    def __len__(self): ...

    class Inner: ...


@overload
def pick(x: int) -> int: ...
@overload
def pick(x: str) -> str: ...
def pick(x):
    return x


def late(): ...
late = wrap(late)

if True:
    def guarded(): ...
'''


def by_name(source: str = SOURCE) -> dict[str, Definition]:
    tree = parse(source)
    assert tree is not None
    found = definitions_in(tree, path="a.py", lines=split_lines(source))
    return {it.symbol.qualname: it for it in found}


def test_top_level_and_direct_members_are_found_in_order_and_guarded_ones_are_not():
    assert list(by_name()) == [
        *("area", "fetch", "Box", "Box.size", "Box._hide", "Box.__len__", "Box.Inner"),
        *("pick", "late"),
    ]


def test_kinds_tell_functions_methods_and_classes_apart():
    kinds = {name: it.symbol.kind for name, it in by_name().items()}
    assert (kinds["fetch"], kinds["Box"], kinds["Box.size"]) == ("function", "class", "method")


def test_lines_include_decorators():
    assert by_name()["area"].spans == (Span(first_line=5, last_line=15),)
    assert by_name()["area"].symbol.first_line == 5


def test_accessors_and_overloads_are_one_definition_each():
    assert [span.first_line for span in by_name()["Box.size"].spans] == [26, 30]
    assert len(by_name()["pick"].spans) == 3
    assert by_name()["Box.size"].decorators == ("property", "size.setter")


def test_an_underscore_anywhere_makes_a_name_private():
    public = {name for name, it in by_name().items() if it.is_public}
    assert public == {"area", "fetch", "Box", "Box.size", "Box.Inner", "pick", "late"}


def test_a_name_that_is_assigned_again_is_rebound():
    assert [name for name, it in by_name().items() if it.is_rebound] == ["late"]


def test_body_lines_leave_out_docstrings_blank_lines_and_comments():
    assert by_name()["area"].num_body_lines == 3
    assert by_name()["fetch"].num_body_lines == 1


def test_docstrings_are_cleaned_and_bases_are_dotted():
    assert by_name()["area"].docstring == "Multiply.\n\nTwice."
    assert by_name()["Box"].bases == ("Base", "Generic")
    assert by_name()["Box"].members == ("Inner", "__len__", "_hide", "limit", "size")


def test_source_that_does_not_parse_has_no_symbols():
    assert parse("print 'python 2'") is None
    assert parse("a = '\0'") is None


def test_a_byte_order_mark_and_invalid_escapes_do_no_harm():
    assert [*by_name("\ufeffdef f():\r\n    return '\\d'\r\n")] == ["f"]


def test_examples_in_docstrings_hold():
    for module in (text, docstrings):
        assert doctest.testmod(module).failed == 0
