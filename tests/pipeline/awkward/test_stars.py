"""A chain of star imports, with `__all__` made of others'."""

from tests.pipeline.awkward.conftest import FarmFor, targets

FILES = {
    "setup.cfg": "[metadata]\nname = grid\n\n[tool:pytest]\naddopts = -p no:cacheprovider\n",
    "grid/__init__.py": '''\
"""Grids."""

from .core import *
from .extra import *
from . import core, extra

__all__ = core.__all__ + extra.__all__
''',
    "grid/core.py": '''\
"""Core."""

from ._base import *
from ._base import __all__ as _names

__all__ = ["turn", *_names]


def turn(rows):
    """Turn rows into columns."""
    columns = zip(*rows, strict=True)
    turned = [list(it) for it in columns]
    return turned
''',
    "grid/_base.py": '''\
"""Base."""

__all__ = ["empty", "fill"]


def empty(width, height):
    """Return a grid of nothing."""
    row = [None] * width
    rows = [list(row) for _ in range(height)]
    return rows


def fill(width, height, value):
    """Return a grid of one value."""
    row = [value] * width
    rows = [list(row) for _ in range(height)]
    return rows
''',
    "grid/extra.py": '''\
"""Extra."""

__all__ = []


def public(function):
    """Make a function public."""
    __all__.append(function.__name__)
    return function


@public
def flip(rows):
    """Turn a grid upside down."""
    copy = list(rows)
    copy.reverse()
    return copy


@public
def total(rows):
    """Add up a grid."""
    sums = [sum(row) for row in rows]
    result = sum(sums)
    return result
''',
    "tests/test_grid.py": """\
from grid import *
import grid


def test_empty():
    assert empty(2, 1) == [[None, None]]
    assert empty(0, 0) == []


def test_fill():
    assert fill(1, 2, 3) == [[3], [3]]
    assert fill(0, 1, 3) == [[]]


def test_turn():
    assert turn([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]
    assert turn([]) == []


def test_flip():
    assert flip([[1], [2]]) == [[2], [1]]
    assert flip([]) == []


def test_total():
    assert total([[1, 2], [3]]) == 6
    assert total([]) == 0


def test_names():
    assert all(hasattr(grid, name) for name in grid.__all__)


def test_doc():
    assert grid.__doc__
""",
}


def test_a_name_that_two_star_imports_pass_on_gives_a_task(farm_for: FarmFor):
    task = farm_for(FILES).right_task("grid._base.empty")
    assert targets(task) == {"tests/test_grid.py::test_empty": "failed"}
    assert "tests/test_grid.py::test_names" in task.evidence.pass_to_pass
