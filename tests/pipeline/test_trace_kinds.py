"""Functions of every kind are seen, and code that is watched behaves as before."""

from pathlib import Path

import pytest

from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.traced import SuiteTrace
from tests.pipeline.conftest import MakeTree, RunFiles

KINDS = '''\
# -*- coding: latin-1 -*-
"""Some kinds of functions: \xe4."""
from __future__ import annotations

import functools
import threading


def plain(x: Nowhere) -> AlsoNowhere:
    return x

def documented():
    """Say so."""
    return documented.__doc__

def only_docstring():
    """Do nothing else."""

def one_line(): return 1

def one_line_documented(): "Short."; return one_line_documented.__doc__

def only_dots(): ...

def outer():
    def inner():
        class Local:
            def method(self):
                return 1
        return Local().method()
    return inner()

def generator():
    yield from (1, 2)

async def coroutine():
    return 1

async def asynchronous():
    yield 1

def decorator(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@decorator
@functools.lru_cache(
    maxsize=None,
)
def decorated(
    x,
):
    return x

def in_thread():
    return "\xe4"

def threaded():
    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()

def never():
    return 0

class Box:
    """A box."""

    default = 3

    def __init__(self, size=default):
        self.size = size

    @property
    def area(self):
        return self.size ** 2

    @area.setter
    def area(self, value):
        self.size = value ** 0.5

    @classmethod
    def make(cls): return cls()

    @staticmethod
    def unit():
        return 1

    class Lid:
        def close(self):
            return True

def raises():
    """Raise on the third line."""
    x = 1
    raise ValueError(x)
'''
TESTS = """
import asyncio, inspect, sys, traceback
import kinds
from kinds import *

def test_plain(): assert plain(2) == 2
def test_documented(): assert documented() == "Say so."
def test_only_docstring(): assert only_docstring() is None and only_docstring.__doc__
def test_one_line(): assert one_line() == 1
def test_one_line_documented(): assert one_line_documented() == "Short."
def test_only_dots(): assert only_dots() is None
def test_nested(): assert outer() == 1
def test_generator(): assert list(generator()) == [1, 2]
def test_generator_not_started(): generator()
def test_coroutine(): assert asyncio.run(coroutine()) == 1
def test_asynchronous():
    async def first():
        return [it async for it in asynchronous()]
    assert asyncio.run(first()) == [1]
def test_decorated(): assert decorated(1) == 1
def test_decorated_again(): assert decorated(1) == 1
def test_threaded(): threaded()
def test_box(): assert Box().size == 3
def test_area():
    box = Box.make()
    box.area = 16
    assert box.area == 16
def test_static(): assert Box.unit() == 1
def test_lid(): assert Box.Lid().close()
def test_nothing(): pass
def test_lines():
    source = open(kinds.__file__, encoding="latin-1").read().splitlines()
    try:
        raises()
    except ValueError as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
    assert line.lineno == source.index("    raise ValueError(x)") + 1
    assert line.line == "raise ValueError(x)"
    assert inspect.getsource(raises).splitlines() == source[-4:]
    assert inspect.getsourcelines(documented)[1] == source.index("def documented():") + 1
    assert inspect.getsource(Box.Lid).splitlines()[1].strip() == "def close(self):"
    assert plain.__annotations__ == {"x": "Nowhere", "return": "AlsoNowhere"}
    assert kinds.__doc__ == "Some kinds of functions: \\xe4."
    assert raises.__code__.co_firstlineno == source.index("def raises():") + 1
"""
REACHED = {
    "test_plain": {"plain"},
    "test_documented": {"documented"},
    "test_only_docstring": {"only_docstring"},
    "test_one_line": {"one_line"},
    "test_one_line_documented": {"one_line_documented"},
    "test_only_dots": {"only_dots"},
    "test_nested": {"outer", "outer.inner", "outer.inner.Local.method"},
    "test_generator": {"generator"},
    "test_generator_not_started": set(),
    "test_coroutine": {"coroutine"},
    "test_asynchronous": {"asynchronous"},
    "test_decorated": {"decorator.wrapper", "decorated"},
    "test_decorated_again": {"decorator.wrapper"},
    "test_threaded": {"threaded", "in_thread"},
    "test_box": {"Box.__init__"},
    "test_area": {"Box.__init__", "Box.make", "Box.area"},
    "test_static": {"Box.unit"},
    "test_lid": {"Box.Lid.close"},
    "test_nothing": set(),
    "test_lines": {"raises"},
}


def names(trace: SuiteTrace, marks: int) -> set[str]:
    """Return the functions that a set of marks enters."""
    return {
        it.qualname
        for module in trace.modules
        for mark, it in module.marks()
        if it.kind == "function" and marks >> mark & 1
    }


@pytest.fixture(scope="module")
def tree(make_tree: MakeTree) -> Path:
    kinds = KINDS.encode("latin-1").decode("utf-8", "surrogateescape")
    return make_tree({"kinds.py": kinds, "test_kinds.py": TESTS})


@pytest.fixture(scope="module")
def kinds(run_files: RunFiles, tree: Path) -> SuiteRun:
    return run_files(tree, SuiteRequest(trace=True))


@pytest.mark.parametrize("name", REACHED)
def test_a_function_of_any_kind_is_seen_when_it_is_entered(kinds: SuiteRun, name: str):
    assert kinds.trace is not None
    reached = kinds.trace.reached[f"test_kinds.py::{name}"]
    assert names(kinds.trace, reached) == REACHED[name]


def test_outcomes_and_lines_are_those_of_a_plain_run(
    kinds: SuiteRun, tree: Path, run_files: RunFiles
):
    plain = run_files(tree)
    assert kinds.messages == plain.messages == {}
    traced = {key: it.outcome for key, it in kinds.by_id().items()}
    assert traced == {key: it.outcome for key, it in plain.by_id().items()}
    assert len(traced) == len(REACHED)


def test_functions_are_named_with_their_file_and_line(kinds: SuiteRun):
    assert kinds.trace is not None
    lines = KINDS.splitlines()
    (module,) = kinds.trace.modules
    assert module.path == "kinds.py"
    functions = [it for it in module.stretches if it.kind == "function"]
    assert len(functions) == KINDS.count("def ")
    for function in functions:
        name = function.qualname.rpartition(".")[2]
        assert f"def {name}(" in lines[function.line - 1]


def test_a_module_too_deep_to_mark_runs_without_marks(run_files: RunFiles):
    branches = "".join(f"    elif x == {number}: return {number}\n" for number in range(1, 480))
    deep = f"def f(x):\n    if x == 0: return 0\n{branches}    return -1\n"
    test = "from deep import f\ndef test(): assert f(400) == 400"
    run = run_files({"deep.py": deep, "test_a.py": test}, SuiteRequest(trace=True))
    assert run.messages == {}
    assert run.trace is not None
    assert not any(module.stretches for module in run.trace.modules)
    assert run.trace.reached == {"test_a.py::test": 0}
