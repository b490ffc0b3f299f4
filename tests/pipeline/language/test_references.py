"""References: whose name a name is, and what counts as a use."""

import pytest

from pipeline.language.python.references import ReferenceIndex, find_links, index_tree
from pipeline.language.python.symbols import Definition
from pipeline.language.python.usage import relatives_of, render, uses_of
from pipeline.language.python.uses import Use

CORE = "def take(n):\n    return take(n - 1)\n"


def outer_uses(definition: Definition, index: ReferenceIndex) -> list[Use]:
    """Return the uses that do not stand in a definition itself."""
    return [
        use
        for use in uses_of(definition, index)
        if use.path != definition.symbol.path
        or not any(it.first_line <= use.line <= it.last_line for it in definition.spans)
    ]


def user_of(definition: Definition, index: ReferenceIndex, *, package: str) -> str:
    """Say who in a package uses a symbol, or overrides it."""
    if definition.is_rebound:
        return f"bound in another way in {definition.symbol.path}"
    for use in outer_uses(definition, index):
        if use.path.startswith(package):
            return render(use)
    relative = next(relatives_of(definition, index), "")
    return f"related to {relative}" if relative else ""


def why(files: dict[str, str], *, qualname: str = "take") -> str:
    """Say who uses a symbol of `pkg/core.py`."""
    index = index_tree({"pkg/__init__.py": "", "pkg/core.py": CORE} | files)
    definition = index.definitions["pkg/core.py", qualname]
    return user_of(definition, index, package="pkg/")


USES = {
    "from pkg.core import take\n\ndef f():\n    take(1)\n": "called at pkg/a.py:4 in f",
    "from .core import take as t\nx = t\n": "read at pkg/a.py:2",
    "import pkg.core\ndef f(): return pkg.core.take\n": "read at pkg/a.py:2 in f",
    "from . import core\ndef f(): core.take(1)\n": "called at pkg/a.py:2 in f",
    "from pkg import core as c\n@c.take\ndef f(): ...\n": "decorator at pkg/a.py:2",
    "from .core import *\nx = take(1)\n": "called at pkg/a.py:2",
    "def f():\n    from .core import take\n    take(1)\n": "called at pkg/a.py:3 in f",
    "from .core import take\nclass A(take): ...\n": "base class at pkg/a.py:2",
    "from .core import take\ndef f(x: 'list[take]'): ...\n": "read at pkg/a.py:2",
    "from .core import take\ndef f(take=take): ...\n": "read at pkg/a.py:2",
    "from .core import take\nf = lambda x: [take for y in x]\n": "read at pkg/a.py:2",
    "from .core import take\nf'{take}'\n": "read at pkg/a.py:2",
    "TABLE = {'take': 1}\n": "string at pkg/a.py:1",
    "TABLE = 'pkg.core:take'\n": "string at pkg/a.py:1",
}


@pytest.mark.parametrize(("source", "reason"), USES.items())
def test_uses_are_found_through_imports_and_strings(source: str, reason: str):
    assert why({"pkg/a.py": source}) == reason


@pytest.mark.parametrize(
    "source",
    [
        "from .core import take\n__all__ = ['take']\n",
        "from .core import take as take\n__all__ += ('take',)\n",
        "def take(): ...\ntake()\n",
        "from itertools import take\ntake()\n",
        "from core import take\ntake()\n",
        "from .core import take\ndef f(take): return take\n",
        "from .core import take\ndef f():\n    for take in x: take()\n",
        "from .core import take\nf = [take for take in x]\n",
        "class A:\n    def take(self): self.take()\n",
        "x = 'how to take'\n",
        "import numpy as core\ncore.take()\n",
    ],
)
def test_imports_exports_and_other_things_of_the_name_are_no_uses(source: str):
    assert not why({"pkg/a.py": source})


def test_own_recursion_and_tests_are_no_uses():
    assert not why({"tests/test_a.py": "from pkg.core import take\ntake(1)\n"})


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("take(1)\n", "called at tests/test_a.py:2"),
        ("class A:\n    how = staticmethod(take)\n", "read at tests/test_a.py:3 in A"),
        ("def test_a():\n    take(1)\n", ""),
        ("NAMES = ['take']\n", ""),
    ],
)
def test_a_test_file_that_needs_it_to_be_imported_is_told(source: str, reason: str):
    files = {"tests/test_a.py": f"from pkg.core import take\n{source}"}
    index = index_tree({"pkg/__init__.py": "", "pkg/core.py": CORE} | files)
    uses = outer_uses(index.definitions["pkg/core.py", "take"], index)
    early = [render(use) for use in uses if use.at_import and use.kind != "string"]
    assert early == [reason] * bool(reason)


def test_a_comprehension_hides_a_name_only_inside():
    source = "from .core import take\ndef f():\n    [take for take in x]\n    take()\n"
    assert why({"pkg/a.py": source}) == "called at pkg/a.py:4 in f"


def test_a_nested_function_sees_the_names_of_its_parent():
    source = "from .core import take\ndef f(take):\n    def g(): take()\n"
    assert not why({"pkg/a.py": source})


def test_a_global_statement_reaches_past_the_function():
    source = "from .core import take\ndef f():\n    global take\n    take()\n"
    assert why({"pkg/a.py": source}) == "called at pkg/a.py:4 in f"


def test_re_exports_are_followed():
    init = "from .core import take as grab\n"
    source = "import pkg\ndef f(): pkg.grab()\n"
    assert why({"pkg/__init__.py": init, "pkg/a.py": source}) == "called at pkg/a.py:2 in f"


def test_relative_imports_climb():
    files = {"pkg/sub/deep/a.py": "from ...core import take\ntake()\n"}
    assert why(files) == "called at pkg/sub/deep/a.py:2"


def test_import_cycles_end():
    sources = {
        "p/__init__.py": "from .a import *\nfrom . import a\n",
        "p/a.py": "from . import *\nfrom .b import x\n",
        "p/b.py": "from .a import x\nfrom p import a, y\n",
    }
    index = index_tree(sources)
    assert find_links(index, "p/__init__.py", "a") == {("p/__init__.py", "a"), ("p/a.py", "")}
    assert ("p/a.py", "x") in find_links(index, "p/b.py", "x")
    assert ("p/b.py", "y") in find_links(index, "p/b.py", "y")


def test_import_roots_name_modules_without_package_folders():
    sources = {"lib/ns/core.py": CORE, "lib/ns/a.py": "from ns.core import take\ntake()\n"}
    for roots, expected in (((), ""), (("lib",), "called at lib/ns/a.py:2")):
        index = index_tree(sources, import_roots=roots)
        definition = index.definitions["lib/ns/core.py", "take"]
        assert user_of(definition, index, package="lib/") == expected


def test_what_runs_at_import_is_told_from_what_does_not():
    source = (
        "from .core import take\n"
        "class A:\n    x = take\n    def f(self, y=take): take\n"
        "if __name__ == '__main__':\n    take()\n"
    )
    index = index_tree({"p/core.py": CORE, "p/a.py": source, "p/__init__.py": ""})
    uses = [use for use in index.uses["p/core.py", "take"] if use.path == "p/a.py"]
    assert [(use.line, use.at_import) for use in uses] == [
        *((3, True), (4, True), (4, False), (6, False))
    ]


@pytest.mark.parametrize(
    ("head", "early"), [("", True), ("from __future__ import annotations\n", False)]
)
def test_annotations_run_at_import_unless_postponed(head: str, early: object):
    index = index_tree({"a.py": f"{head}class A: ...\ndef f(x: A) -> A: ...\n"})
    assert {use.at_import for use in index.uses["a.py", "A"]} == {early}


METHODS = {
    "class A:\n    def run(self): ...\n": "",
    "class A:\n    def run(self): self.run()\n": "",
    "class A:\n    def run(self): ...\ndef f(x): x.run()\n": "called at pkg/core.py:3 in f",
    "class A:\n    def run(self): ...\n    go = run\n": "read at pkg/core.py:3 in A",
    "class A:\n    def run(self): ...\ngetattr(A, 'run')\n": "string at pkg/core.py:3",
    "class A:\n    def run(self): ...\n    run = wrap(1)\n": "bound in another way in pkg/core.py",
    "class B:\n    run = 1\nclass A(B):\n    def run(self): ...\n": "related to pkg/core.py:B.run",
    "class A:\n    def run(self): ...\nclass B(A): ...\nclass C(B):\n    def run(self): ...\n": (
        "related to pkg/core.py:C.run"
    ),
    "class D: ...\nclass A(D, dict):\n    def run(self): ...\n    def get(self): ...\n": "",
}


@pytest.mark.parametrize(("source", "reason"), METHODS.items())
def test_methods_are_used_by_any_attribute_of_their_name_and_by_their_family(
    source: str, reason: str
):
    assert why({"pkg/core.py": source}, qualname="A.run") == reason


def test_a_method_of_a_builtin_base_is_an_override():
    source = "class A(dict):\n    def get(self): ...\n"
    assert why({"pkg/core.py": source}, qualname="A.get") == "related to builtins:dict.get"


def test_files_that_do_not_parse_are_left_out():
    assert not why({"pkg/a.py": "from .core import take\ntake(\n"})
