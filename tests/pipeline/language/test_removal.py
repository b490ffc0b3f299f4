"""Files of which nothing is left go, with every import of them."""

import pytest

from pipeline.language.python.references import index_tree
from pipeline.language.python.seams import Plan, plan_deletion

MODULE = "import os\n\n_LIMIT = 3\n\n\ndef one():\n    return _LIMIT\n\n\ndef two(): ...\n"


def plan(files: dict[str, str], path: str) -> Plan:
    index = index_tree(files)
    planned = plan_deletion(
        [it for it in index.scans[path].definitions if "." not in it.symbol.qualname],
        files,
        index,
        is_package_file=lambda it: not it.startswith("tests/"),
    )
    assert isinstance(planned, Plan), planned
    return planned


def removed(planned: Plan) -> list[str]:
    return [it.path for it in planned.files if it.is_removed]


def test_a_module_goes_with_the_imports_and_exports_of_it():
    files = {
        "p/__init__.py": "from . import m, stays\nfrom .m import *\n\n__all__ = ['m', 'stays']\n",
        "p/m.py": MODULE,
        "p/m.pyi": "def one(): ...\ndef two(): ...\n",
        "p/stays.py": "x = 1\n",
        "tests/test_m.py": "import p.m\nfrom p import m as same\n\n\ndef test():\n    p.m.one()\n",
    }
    planned = plan(files, "p/m.py")
    assert removed(planned) == ["p/m.py", "p/m.pyi"]
    assert dict(planned.new_sources) == {
        "p/__init__.py": "from . import stays\n\n__all__ = ['stays']\n",
        "tests/test_m.py": "def test():\n    p.m.one()\n",
    }
    assert {"p/m.py", "p/m.pyi"} <= set(planned.seams)


@pytest.mark.parametrize(
    "other",
    [
        "from p.m import _LIMIT\n\n\ndef f():\n    return _LIMIT\n",
        "from p import m\n\n\ndef f():\n    return m\n",
        "import p.m\n\nx = p.q.y\n",
    ],
)
def test_a_module_that_is_needed_for_more_stays(other: str):
    files = {"p/__init__.py": "", "p/m.py": MODULE, "p/other.py": other, "p/q.py": "y = 1\n"}
    planned = plan(files, "p/m.py")
    assert removed(planned) == []
    assert "def" not in dict(planned.new_sources)["p/m.py"]


def test_a_module_with_a_definition_left_stays():
    files = {"p/__init__.py": "", "p/m.py": MODULE}
    index = index_tree(files)
    planned = plan_deletion(
        [index.definitions["p/m.py", "one"]], files, index, is_package_file=lambda _: True
    )
    assert isinstance(planned, Plan)
    assert removed(planned) == []


def test_what_is_there_for_type_checkers_keeps_no_module():
    guarded = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from a import B\n\n\n"
    files = {"p/__init__.py": "", "p/m.py": f"{guarded}def one(x: 'B'): ...\n"}
    assert removed(plan(files, "p/m.py")) == ["p/m.py"]


def test_the_initialiser_goes_when_its_package_is_empty():
    files = {
        "p/__init__.py": "from p import inner\nfrom p.inner import one, two\n",
        "p/inner/__init__.py": "from p.inner.m import one, two\n",
        "p/inner/m.py": MODULE,
    }
    planned = plan(files, "p/inner/m.py")
    assert removed(planned) == ["p/inner/__init__.py", "p/inner/m.py"]
    assert dict(planned.new_sources) == {"p/__init__.py": ""}
