"""Which functions each test enters, and which run before any test."""

import pytest

from pipeline.baseline import measure_baseline
from pipeline.task.record import Baseline
from pipeline.task.reject import Reject
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.traced import SuiteTrace
from pipeline.trace import Trace, summarise, trace_suite
from tests.pipeline.conftest import DeskFor, MakeTree, RepoFor, RunFiles

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


def names(trace: SuiteTrace, marks: int) -> set[str]:
    """Return the functions that a set of marks enters."""
    return {
        it.qualname
        for module in trace.modules
        for mark, it in module.marks()
        if it.kind == "function" and marks >> mark & 1
    }


@pytest.fixture(scope="module")
def when(run_files: RunFiles) -> SuiteRun:
    return run_files(WHEN, SuiteRequest(trace=True))


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
        passing=passing,
        quarantined=(),
        durations_s=durations,
        cpu_s=(1.0,),
        num_runs=1,
        plugins=(),
        alarms=(),
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
    ids = ("test_b.py::test_other_module", "test_a.py::test_module")
    trace = summarise(when.trace, ids=ids, cpu_ratio=1.5)
    assert trace.tests == {
        ("pkg/when.py", "session_fixture"): ids,
        ("pkg/when.py", "module_fixture"): ids,
    }


def test_a_test_that_fails_only_while_traced_is_left_out(
    make_tree: MakeTree, repo_for: RepoFor, desk_for: DeskFor
):
    tests = """
import builtins, pytest
from pkg import f
@pytest.mark.parametrize("n", range(60))
def test(n):
    f()
    assert n or not hasattr(builtins, "__regrow_marks__")
"""
    tree = make_tree({"pkg.py": "def f(): pass", "test_a.py": tests})
    repo, desk = repo_for(tree), desk_for(tree)
    ids = tuple(f"test_a.py::test[{number}]" for number in range(60))
    trace = trace_suite(repo, baseline=baseline_of(*ids), desk=desk)
    assert isinstance(trace, Trace), trace
    assert trace.tests == {("pkg.py", "f"): ids[1:]}
    assert trace.lines.tests_in("pkg.py") == ids[1:]
