"""Seams: what goes along with a symbol, what keeps it from going."""

import pytest

from pipeline.language.python.references import index_tree
from pipeline.language.python.seams import Plan, edit_file, plan_deletion

INIT = '''\
"""Package."""
from .core import (
    drop,
    take,
)

__all__ = [
    "drop",
    "take",
]
'''
CORE = '''\
"""Core."""
import os
import re
from typing import TYPE_CHECKING

from ._util import _check, clean

if TYPE_CHECKING:
    from io import BytesIO

__all__ = ["drop", "take"]

_PATTERN = re.compile("x")  # for _split


def drop(x):
    return os.fspath(x)


def _split(x):
    return _PATTERN.split(x)


# What it does.
def take(n: "BytesIO"):
    """Take."""
    _check(n)
    return _split(clean(n))
'''
UTIL = """\
import sys


def _check(n):
    return sys.exit(n)


def clean(n):
    return n
"""
TEST = """\
import pytest
from pkg import drop, take
from pkg.core import take as core_take


def test_drop():
    assert drop(1)


def test_take():
    from pkg.core import take as again
    assert take(1) == core_take(1)
"""
TREE = {
    "src/pkg/__init__.py": INIT,
    "src/pkg/core.py": CORE,
    "src/pkg/_util.py": UTIL,
    "tests/test_core.py": TEST,
}


def plan(files: dict[str, str], *qualnames: str, path: str = "src/pkg/core.py") -> Plan | str:
    index = index_tree(files)
    definitions = [index.definitions[path, name] for name in qualnames]
    return plan_deletion(
        definitions, files, index, is_package_file=lambda it: it.startswith("src/")
    )


def planned(files: dict[str, str], *qualnames: str) -> dict[str, str]:
    """Return the texts after a deletion that must be possible."""
    result = plan(files, *qualnames)
    assert isinstance(result, Plan), result
    return dict(result.new_sources)


def test_everything_that_only_the_symbol_needs_goes_with_it():
    assert planned(TREE, "take") == {
        "src/pkg/__init__.py": INIT.replace("    take,\n", "").replace('    "take",\n', ""),
        "src/pkg/core.py": '''\
"""Core."""
import os

__all__ = ["drop"]


def drop(x):
    return os.fspath(x)
''',
        "src/pkg/_util.py": "def clean(n):\n    return n\n",
        "tests/test_core.py": """\
import pytest
from pkg import drop


def test_drop():
    assert drop(1)


def test_take():
    assert take(1) == core_take(1)
""",
    }


def test_seams_name_all_that_went_besides_the_symbol():
    result = plan(TREE, "take")
    assert isinstance(result, Plan)
    assert result.seams == (
        "src/pkg/__init__.py:take",
        "src/pkg/_util.py:_check",
        "src/pkg/_util.py:sys",
        "src/pkg/core.py:BytesIO",
        "src/pkg/core.py:TYPE_CHECKING",
        "src/pkg/core.py:_PATTERN",
        "src/pkg/core.py:_check",
        "src/pkg/core.py:_split",
        "src/pkg/core.py:clean",
        "src/pkg/core.py:re",
        "src/pkg/core.py:take",
        "tests/test_core.py:again",
        "tests/test_core.py:core_take",
        "tests/test_core.py:take",
    )


def test_a_plan_can_be_carried_out_file_by_file():
    result = plan(TREE, "take")
    assert isinstance(result, Plan)
    for path, text in result.new_sources:
        assert edit_file(path, TREE[path], result) == text
    assert edit_file("other.py", "x = 1\n", result) == "x = 1\n"


def with_line(line: str, *, path: str = "tests/test_core.py") -> dict[str, str]:
    """Return the tree with a line more at the end of a file."""
    return TREE | {path: TREE.get(path, "") + line}


@pytest.mark.parametrize(
    ("line", "path", "kept"),
    [
        ("from pkg.core import _split\n", "tests/test_core.py", "def _split"),
        ("def test_x(m): m.setattr('pkg.core._split')\n", "tests/test_core.py", "def _split"),
        ("def test_x(m): m._split()\n", "tests/test_core.py", "def _split"),
        ("import pkg.core as c\ndef test_x(): c.re\n", "tests/test_core.py", "import re\n"),
        ("from .core import re\n", "src/pkg/other.py", "import re\n"),
        ("from .core import _split\n", "src/pkg/__init__.py", "def _split"),
        ("__all__.append('clean')\n", "src/pkg/core.py", "import clean"),
        ("def f():\n    '''>>> re.match'''\n", "src/pkg/core.py", "import re\n"),
        ("_split = _split\n", "src/pkg/core.py", "def _split"),
        ("_PATTERN = 1\n", "src/pkg/core.py", "_PATTERN = re"),
        ("def f():\n    return _PATTERN\n", "src/pkg/core.py", "_PATTERN = re"),
    ],
)
def test_helpers_and_imports_that_others_may_need_stay(line: str, path: str, kept: str):
    assert kept in planned(with_line(line, path=path), "take")["src/pkg/core.py"]


@pytest.mark.parametrize(
    ("line", "path", "reason"),
    [
        ("grab = take\n", "src/pkg/core.py", "used_at_import: read at src/pkg/core.py:29"),
        ("x = [take]\n", "tests/test_core.py", "used_at_import: read at tests/test_core.py:13"),
        (
            "@pytest.mark.parametrize('f', [take])\ndef test_f(f): f()\n",
            "tests/test_core.py",
            "used_at_import: read at tests/test_core.py:13",
        ),
        (
            "def f():\n    take()\n",
            "src/pkg/core.py",
            "used_elsewhere: called at src/pkg/core.py:30 in f",
        ),
        ("T = {'take': 1}\n", "src/pkg/core.py", "used_elsewhere: string at src/pkg/core.py:29"),
        (
            "if x:\n    def take(): ...\n",
            "src/pkg/core.py",
            "used_elsewhere: bound in another way in src/pkg/core.py",
        ),
    ],
)
def test_users_keep_a_symbol(line: str, path: str, reason: str):
    assert plan(with_line(line, path=path), "take") == reason


def test_a_user_that_goes_too_is_no_obstacle():
    files = with_line("\n\ndef twice():\n    take(take(1))\n", path="src/pkg/core.py")
    assert "def twice" not in planned(files, "take", "twice")["src/pkg/core.py"]


def test_star_imports_and_stub_twins_are_followed():
    files = {
        "src/pkg/__init__.py": "from .core import *\n__all__ = ('take', 'drop')\n",
        "src/pkg/__init__.pyi": "from .core import drop as drop, take as take\n",
        "src/pkg/core.py": "def take(): ...\n\n\ndef drop(): ...\n",
        "src/pkg/core.pyi": "def take() -> int: ...\ndef drop() -> int: ...\n",
        "tests/test_a.py": "from pkg import *\n\n\ndef test_a(): take()\n",
        "tests/test_b.py": "import pkg as p\nfrom pkg import take as t\n",
    }
    assert planned(files, "take") == {
        "src/pkg/__init__.py": "from .core import *\n__all__ = ('drop',)\n",
        "src/pkg/__init__.pyi": "from .core import drop as drop\n",
        "src/pkg/core.py": "def drop(): ...\n",
        "src/pkg/core.pyi": "def drop() -> int: ...\n",
        "tests/test_b.py": "import pkg as p\n",
    }


def test_chains_of_packages_are_followed_through_relative_imports():
    files = {
        "src/pkg/__init__.py": "from .sub import take as grab\n",
        "src/pkg/sub/__init__.py": "from .deep import take\n",
        "src/pkg/sub/deep/__init__.py": "from ...core import take, drop\n",
        "src/pkg/core.py": "def take(): ...\n\n\ndef drop(): ...\n",
        "tests/conftest.py": "from pkg import grab as g\n",
        "tests/other.py": "from pkg.sub import grab, take\n",
    }
    assert planned(files, "take") == {
        "src/pkg/__init__.py": "",
        "src/pkg/sub/__init__.py": "",
        "src/pkg/sub/deep/__init__.py": "from ...core import drop\n",
        "src/pkg/core.py": "def drop(): ...\n",
        "tests/conftest.py": "",
        "tests/other.py": "from pkg.sub import grab\n",
    }


BOX = '''\
from functools import cached_property


class Box:
    """A box."""

    def size(self):
        return self._area + self._deep()

    @cached_property
    def _area(self):
        return 1

    def _deep(self):
        return 2

    def other(self):
        return self._deep()
'''


def test_a_method_takes_private_methods_that_only_it_uses():
    text = planned({"src/pkg/core.py": BOX}, "Box.size")["src/pkg/core.py"]
    assert (
        text
        == '''\
class Box:
    """A box."""

    def _deep(self):
        return 2

    def other(self):
        return self._deep()
'''
    )


def test_methods_of_one_family_can_go_together():
    files = {
        "src/pkg/core.py": "class A:\n    def f(self): ...\nclass B(A):\n    def f(self): ...\n"
    }
    assert plan(files, "A.f") == "used_elsewhere: related to src/pkg/core.py:B.f"
    after = "class A:\n    pass\nclass B(A):\n    pass\n"
    assert planned(files, "A.f", "B.f") == {"src/pkg/core.py": after}


def test_a_class_goes_with_its_private_base():
    files = {"src/pkg/core.py": "class _Base: ...\n\n\nclass Box(_Base): ...\n\n\nx = 1\n"}
    assert planned(files, "Box") == {"src/pkg/core.py": "x = 1\n"}


def test_a_helper_that_a_decorator_may_have_registered_stays():
    core = "@register\ndef _help(): ...\n\n\ndef take():\n    _help()\n"
    assert planned({"src/pkg/core.py": core}, "take") == {
        "src/pkg/core.py": "@register\ndef _help(): ...\n"
    }
