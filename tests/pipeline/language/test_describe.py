"""Descriptions: the interface of a symbol, and none of its code."""

import dataclasses

import pytest

from pipeline.language.python.describe import Description, Signature, describe
from pipeline.language.python.docstrings import examples_of, first_paragraph, prose_of
from pipeline.language.python.references import index_tree

CORE = '''\
import functools

__all__ = ["Box", "take"]


def take(
    n: int,
    /,
    seq: "list[int]" = (),  # why
    *rest,
    key=lambda it: it,
    **options: object,
) -> list[int]:
    """Take some.

    Nothing else.

    Examples
    --------
    >>> take(2)
    [1]
    """
    return secret(n)


@overload
def pick(x: int) -> int: ...
@overload
async def pick(x: str) -> str: ...
def pick(x):
    return secret


@functools.total_ordering
class Box(Base, Generic[T], metaclass=Meta):
    """A box."""

    limit: int = 3
    _hidden = 4
    first = second = 5
    names = secret()

    def __init__(self, size: int = 1): self.secret = 1

    def __len__(self): return secret

    @property
    def area(self) -> int:
        """Say the area.

        At length.
        """

    @area.setter
    def area(self, value): secret()

    @classmethod
    def of(cls, *sizes): secret()

    def _private(self): ...
'''
TREE = {
    "src/pkg/__init__.py": "from ._core import Box, take\nfrom ._core import take as grab\n",
    "src/pkg/_core.py": CORE,
    "src/pkg/user.py": "from ._core import take\n",
    "src/pkg/api.py": "from ._core import take\n__all__ = ['take']\n",
    "tests/__init__.py": "from pkg import take\n",
}


def described(qualname: str) -> Description:
    index = index_tree(TREE, import_roots=("src",))
    definition = index.definitions["src/pkg/_core.py", qualname]
    return describe(definition, CORE, index=index, is_package_file=lambda it: it.startswith("src/"))


def test_public_and_short_import_paths_come_first():
    assert described("take").import_paths == (
        *("pkg.grab", "pkg.take", "pkg.api.take", "pkg._core.take"),
    )
    assert described("Box.area").import_paths == ("pkg.Box.area", "pkg._core.Box.area")


def test_a_signature_is_one_line_with_defaults_and_annotations():
    assert described("take").signatures == (
        Signature(
            decorators=(),
            text="def take(n: int, /, seq: 'list[int]'=(), *rest, key=lambda it: it, "
            "**options: object) -> list[int]",
        ),
    )


def test_each_overload_and_accessor_has_its_signature_with_decorators():
    assert [(it.decorators, it.text) for it in described("pick").signatures] == [
        (("@overload",), "def pick(x: int) -> int"),
        (("@overload",), "async def pick(x: str) -> str"),
        ((), "def pick(x)"),
    ]
    assert [it.decorators for it in described("Box.area").signatures] == [
        *(("@property",), ("@area.setter",))
    ]


def test_a_class_shows_its_public_surface():
    box = described("Box")
    assert [it.text for it in box.signatures] == ["def __init__(self, size: int=1)"]
    assert (box.decorators, box.bases) == (("@functools.total_ordering",), ("Base", "Generic[T]"))
    assert [(it.name, len(it.signatures), it.summary) for it in box.methods] == [
        *(("area", 2, "Say the area."), ("of", 1, ""))
    ]
    assert (box.attributes, box.special_methods) == (("limit", "names"), ("__len__",))


@pytest.mark.parametrize("qualname", ["take", "pick", "Box", "Box.area", "Box.of"])
def test_no_body_code_is_told_and_examples_stand_apart(qualname: str):
    found = described(qualname)
    assert "secret" not in str(dataclasses.asdict(found))
    assert ">>>" not in str(dataclasses.asdict(dataclasses.replace(found, examples="")))


def test_as_many_examples_are_told_as_fit():
    docstring = "Add.\n\n    >>> add(1)\n    2\n\nMore.\n\n>>> f()\n{}" + "\n>>> g()" * 30
    assert examples_of(docstring) == ">>> add(1)\n2"
    assert examples_of(docstring.partition("\n>>> g")[0]) == ">>> add(1)\n2\n\n>>> f()\n{}"


def test_a_definition_of_another_source_is_an_error():
    index = index_tree(TREE)
    definition = index.definitions["src/pkg/_core.py", "take"]
    with pytest.raises(ValueError, match=r"src/pkg/_core\.py has no take"):
        describe(definition, "x = 1\n", index=index, is_package_file=bool)


PROSE = {
    "doctest": ("Add.\n\n>>> add(1)\n2\n\nMore.", "Add.\n\nMore."),
    "doctest right below its text": ("Add:\n  >>> add(1)\n  2\n\nMore.", "Add.\n\nMore."),
    "literal block": ("See::\n\n    x = 1\n\n    y = 2\n\nMore.", "See.\nMore."),
    "line that leads to code": ("A.\n\nLike so:\n\n    >>> f()\n    1\n\nB.", "A.\n\nB."),
    "line of a paragraph": ("A.\nLike\nso:\n\n>>> f()\n\nB.", "A.\nLike\nso.\n\nB."),
    "line below a sentence": ("A.\nLike so:\n\n>>> f()\n\nB.", "A.\n\nB."),
    "lonely colons": ("See.\n\n::\n\n    x = 1\n\nMore.", "See.\n\nMore."),
    "directive": ("A.\n\n.. code-block:: python\n   :x:\n\n   y = 2\n\nMore.", "A.\n\nMore."),
    "note": (
        "A.\n\n.. note::\n    Uses `re.match`.\n\nMore.",
        "A.\n\n.. note::\n    Uses `re.match`.\n\nMore.",
    ),
    "fence": ("A.\n\n```python\nx = 1\n\ny = 2\n```\nMore.", "A.\n\nMore."),
    "unclosed fence": ("A.\n\n```\nx = 1", "A."),
    "google heading": (
        "A.\n\nArgs:\n    x: one.\n\nExample:\n    >>> f()\n\nReturns:\n    two.",
        "A.\n\nArgs:\n    x: one.\n\nReturns:\n    two.",
    ),
    "numpy heading": (
        "A.\n\nExamples\n--------\n>>> f()\n\nSee Also\n--------\ng",
        "A.\n\nSee Also\n--------\ng",
    ),
    "heading with prose": (
        "A.\n\nExamples\n--------\nLike so.",
        "A.\n\nExamples\n--------\nLike so.",
    ),
    "last heading": ("A.\n\nUsage::\n\n    f()\n", "A."),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("docstring", "expected"), PROSE.values(), ids=PROSE.keys())
def test_prose_is_what_is_left_without_code(docstring: str, expected: str):
    assert prose_of(docstring) == expected


def test_the_first_paragraph_ends_at_a_blank_line():
    assert first_paragraph("One\ntwo.\n\nThree.") == "One\ntwo."
