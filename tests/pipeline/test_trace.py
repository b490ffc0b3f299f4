"""Which functions each test enters, and that being watched changes nothing."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from pipeline.baseline import measure_baseline
from pipeline.task.record import Baseline, Reject
from pipeline.task.suite import SuiteRequest, SuiteRun, SuiteTrace
from pipeline.trace import Trace, summarise, trace_suite
from tests.pipeline.conftest import DeskFor, MakeTree, RepoFor, RunFiles

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

WHEN = {
    "conftest.py": """
import pytest
from pkg import when
when.in_conftest()

@pytest.fixture(scope="session")
def of_session(): when.session_fixture(); yield; when.after_session()
@pytest.fixture(scope="module")
def of_module(of_session): when.module_fixture()
@pytest.fixture
def of_function(): when.function_fixture()
@pytest.fixture(scope="session")
def by_request(request): when.outer_fixture(); request.getfixturevalue("of_session")
""",
    "pkg/__init__.py": "",
    "pkg/empty.py": "",
    "pkg/comment.py": "# nothing",
    "pkg/when.py": "\n".join(
        f"def {name}(): return 1"
        for name in (
            "in_conftest", "in_module", "in_parameters", "in_test", "session_fixture", "in_import",
            "after_session", "module_fixture", "function_fixture", "outer_fixture", "class_setup",
        )
    ) + "\nin_import()\n",
    "pkg/late.py": "def at_late_import(): return 1\nat_late_import()\ndef later(): return 2",
    "test_a.py": """
import pytest
from pkg.when import *
in_module()
@pytest.mark.parametrize("x", [in_parameters()])
def test_call(x): in_test()
def test_session(of_session): pass
def test_module(of_module): pass
def test_module_again(of_module): pass
def test_function(of_function): pass
def test_function_again(of_function): pass
def test_request(by_request): pass
def test_late():
    from pkg import empty, comment, late
    assert late.later() == 2
def test_dynamic(request): request.getfixturevalue("of_session")
class TestClass:
    @classmethod
    def setup_class(cls): class_setup()
    def test_one(self): pass
    def test_two(self): pass
""",
    "test_b.py": "def test_other_module(of_module): pass\ndef test_other(): pass",
}  # fmt: skip
BY_TEST = {
    "test_a.py::test_call[1]": {"in_test"},
    "test_a.py::test_session": {"session_fixture"},
    "test_a.py::test_module": {"session_fixture", "module_fixture"},
    "test_a.py::test_module_again": {"session_fixture", "module_fixture"},
    "test_a.py::test_function": {"function_fixture"},
    "test_a.py::test_function_again": {"function_fixture"},
    "test_a.py::test_request": {"outer_fixture", "session_fixture"},
    "test_a.py::test_late": {"later"},
    "test_a.py::test_dynamic": {"session_fixture"},
    "test_a.py::TestClass::test_one": {"class_setup"},
    "test_a.py::TestClass::test_two": {"class_setup"},
    "test_b.py::test_other_module": {"session_fixture", "module_fixture"},
    "test_b.py::test_other": {"after_session"},
}


def names(trace: SuiteTrace, numbers: Iterable[int]) -> set[str]:
    return {trace.functions[number].qualname for number in numbers}


@pytest.fixture(scope="module")
def tree(make_tree: MakeTree) -> Path:
    kinds = KINDS.encode("latin-1").decode("utf-8", "surrogateescape")
    return make_tree({"kinds.py": kinds, "test_kinds.py": TESTS})


@pytest.fixture(scope="module")
def kinds(run_files: RunFiles, tree: Path) -> SuiteRun:
    return run_files(tree, SuiteRequest(trace=True))


@pytest.fixture(scope="module")
def when(run_files: RunFiles) -> SuiteRun:
    return run_files(WHEN, SuiteRequest(trace=True))


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
    assert {it.path for it in kinds.trace.functions} == {"kinds.py"}
    for function in kinds.trace.functions:
        name = function.qualname.rpartition(".")[2]
        assert f"def {name}(" in lines[function.line - 1]


def test_calls_while_importing_collecting_and_testing_are_told_apart(when: SuiteRun):
    trace = when.trace
    assert trace is not None
    assert names(trace, trace.at_import) == {"in_import", "at_late_import"}
    assert names(trace, trace.at_collection) == {"in_conftest", "in_module", "in_parameters"}
    early = names(trace, trace.at_import | trace.at_collection)
    assert not early & set().union(*(names(trace, it) for it in trace.reached.values()))


@pytest.mark.parametrize("key", BY_TEST)
def test_what_a_fixture_enters_is_charged_to_every_test_that_uses_it(when: SuiteRun, key: str):
    assert when.trace is not None
    assert names(when.trace, when.trace.reached[key]) == BY_TEST[key]


def test_a_run_without_trace_has_none(run_files: RunFiles):
    assert run_files({"test_a.py": "def test(): pass"}).trace is None


SMALL = """
from pkg.core import twice, early
early()
def test_twice(): assert twice(2) == 4
def test_none(): pass
"""
CORE = "def twice(x):\n    return helper(x)\ndef helper(x): return 2 * x\ndef early(): return 0"


@pytest.mark.parametrize("root", [".", "src"])
def test_a_trace_names_the_tests_of_each_function_in_any_layout(
    make_tree: MakeTree, repo_for: RepoFor, desk_for: DeskFor, root: str
):
    folder = "" if root == "." else f"{root}/"
    core = f"{folder}pkg/core.py"
    command = {"import_roots": (root,), "args": ("-o", f"pythonpath={root}")}
    tree = make_tree({core: CORE, f"{folder}pkg/__init__.py": "", "tests/test_a.py": SMALL})
    repo, desk = repo_for(tree, **command), desk_for(tree, **command)
    baseline = measure_baseline(repo, desk=desk)
    assert isinstance(baseline, Baseline), baseline
    trace = trace_suite(repo, baseline=baseline, desk=desk)
    assert isinstance(trace, Trace), trace
    test = ("tests/test_a.py::test_twice",)
    assert trace.tests == {(core, "twice"): test, (core, "helper"): test}
    assert trace.early == {(core, "early")}
    assert trace.names == {core: {"twice", "helper", "early"}}
    assert 0 < trace.cpu_ratio < 20


def baseline_of(*passing: str) -> Baseline:
    durations = (0.0,) * len(passing)
    return Baseline(
        passing=passing, quarantined=(), durations_s=durations, cpu_s=(1.0,), num_runs=1
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "import builtins\ndef test(): assert not hasattr(builtins, '__regrow_marks__')",
            "differs",
        ),
        ("def test(): pass", "empty"),
        ("import os\ndef test(): os._exit(3)", "aborted"),
    ],
)
def test_a_suite_that_cannot_be_traced_is_rejected(
    make_tree: MakeTree, repo_for: RepoFor, desk_for: DeskFor, body: str, reason: str
):
    tree = make_tree({"pkg.py": "def f(): pass", "test_a.py": body})
    baseline = baseline_of("test_a.py::test")
    result = trace_suite(repo_for(tree), baseline=baseline, desk=desk_for(tree))
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("trace", reason), result


def test_tests_outside_the_baseline_and_repeats_are_left_out(when: SuiteRun):
    assert when.trace is not None
    baseline = baseline_of("test_b.py::test_other_module", "test_a.py::test_module")
    trace = summarise(when.trace, baseline=baseline, cpu_ratio=1.5)
    assert trace.tests == {
        ("pkg/when.py", "session_fixture"): baseline.passing,
        ("pkg/when.py", "module_fixture"): baseline.passing,
    }
