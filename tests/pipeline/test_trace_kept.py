"""A trace is kept, small and whole, and nobody runs a suite twice for it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.baseline import measure_baseline
from pipeline.task.grade import Desk
from pipeline.task.origin import Environment, Repo, Snapshot, TestCommand
from pipeline.task.reached import Lines
from pipeline.task.record import Baseline
from pipeline.task.reject import Reject
from pipeline.task.trace_file import TracedSuite, read_trace, write_trace
from pipeline.task.traced import MarkedModule, Stretch, SuiteTrace, each_mark
from pipeline.trace import Trace, trace_path, trace_suite
from tests.pipeline.conftest import DeskFor, MakeTree, RepoFor

CORE = """\
def sign(x):
    if x < 0:
        return -1
    return 1
"""
TESTS = """\
from core import sign
def test_minus(): assert sign(-3) == -1
def test_plus(): assert sign(3) == 1
"""
MINUS, PLUS = "test_a.py::test_minus", "test_a.py::test_plus"


@pytest.fixture(scope="module")
def tree(make_tree: MakeTree) -> Path:
    return make_tree({"core.py": CORE, "test_a.py": TESTS})


@pytest.fixture(scope="module")
def repo(tree: Path, repo_for: RepoFor) -> Repo:
    return repo_for(tree)


@pytest.fixture(scope="module")
def desk(tree: Path, desk_for: DeskFor) -> Desk:
    return desk_for(tree)


@pytest.fixture(scope="module")
def baseline(repo: Repo, desk: Desk) -> Baseline:
    found = measure_baseline(repo, desk=desk)
    assert isinstance(found, Baseline)
    return found


def traced(repo: Repo, baseline: Baseline, desk: Desk, kept: Path) -> Trace:
    trace = trace_suite(repo, baseline=baseline, desk=desk, kept=kept)
    assert isinstance(trace, Trace), trace
    return trace


def test_a_kept_trace_is_the_same_and_runs_nothing(
    repo: Repo, baseline: Baseline, desk: Desk, make_tree: MakeTree, tmp_path: Path
):
    kept = tmp_path / "traces" / "it.json.xz"
    first = traced(repo, baseline, desk, kept)
    empty = replace(desk, tree=make_tree({"test_a.py": "def test(): assert False"}))
    assert traced(repo, baseline, empty, kept) == first
    assert isinstance(trace_suite(repo, baseline=baseline, desk=empty), Reject)


def test_a_kept_trace_that_is_torn_is_made_anew(
    repo: Repo, baseline: Baseline, desk: Desk, tmp_path: Path
):
    kept = tmp_path / "it.json.xz"
    first = traced(repo, baseline, desk, kept)
    whole = kept.read_bytes()
    for torn in (b"", whole[:50], whole[:-9], b"{}"):
        kept.write_bytes(torn)
        assert traced(repo, baseline, desk, kept).lines.trace == first.lines.trace
        assert read_trace(kept)


def test_a_kept_trace_of_other_tests_is_made_anew(
    repo: Repo, baseline: Baseline, desk: Desk, tmp_path: Path
):
    kept = tmp_path / "it.json.xz"
    trace = SuiteTrace(modules=(), at_import=0, at_collection=0, reached={"test_b.py::test": 1})
    write_trace(kept, TracedSuite(trace=trace, passed=frozenset({"test_b.py::test"}), cpu_s=1.0))
    assert traced(repo, baseline, desk, kept).tests == {("core.py", "sign"): (MINUS, PLUS)}


def test_a_suite_that_cannot_be_traced_leaves_nothing(
    repo: Repo, baseline: Baseline, desk: Desk, make_tree: MakeTree, tmp_path: Path
):
    red = replace(desk, tree=make_tree({"test_a.py": "def test(): assert False"}))
    kept = tmp_path / "it.json.xz"
    assert isinstance(trace_suite(repo, baseline=baseline, desk=red, kept=kept), Reject)
    assert not kept.exists()


def test_lines_tell_the_branches_of_each_test(
    repo: Repo, baseline: Baseline, desk: Desk, tmp_path: Path
):
    lines = traced(repo, baseline, desk, tmp_path / "it").lines
    assert lines.tests_at("core.py", 3, 3) == (MINUS,)
    assert lines.tests_at("core.py", 4, 9) == (PLUS,)
    assert lines.tests_at("core.py", 3, 4) == lines.tests_in("core.py") == (MINUS, PLUS)
    assert lines.tests_of("core.py", "sign") == (MINUS, PLUS)
    assert lines.tests_of("core.py", "sig") == lines.tests_in("other.py") == ()
    assert lines.reached_by(MINUS, "core.py") == {2, 3}
    assert lines.reached("core.py") == {2, 3, 4}
    assert lines.at_import("core.py") == {1}
    assert lines.at_collection("core.py") == frozenset()


def test_lines_of_a_class_are_those_of_its_body_and_methods():
    parts = [("class", "Box", (1, 2)), ("function", "Box.size", (3, 3)), ("rest", "Boxes", (4, 4))]
    stretches = tuple(
        Stretch(kind=kind, qualname=name, line=1, lines=(pair,)) for kind, name, pair in parts
    )
    trace = SuiteTrace(
        modules=(MarkedModule(path="a.py", first=5, stretches=stretches),),
        at_import=1 << 5,
        at_collection=1 << 6,
        reached={"a": 1 << 5, "b": 1 << 6, "c": 1 << 7, "d": 0, "e": 1 << 8},
    )
    lines = Lines(trace, ids=("c", "b", "a", "d", "unknown"))
    assert lines.tests_of("a.py", "Box") == ("b", "a")
    assert lines.tests_in("a.py") == ("c", "b", "a")
    assert lines.at_import("a.py") == {1, 2}
    assert lines.at_collection("a.py") == {3}


def test_whatever_decides_a_trace_is_in_its_name(environment: Environment, tmp_path: Path):
    snapshot = Snapshot(digest="a" * 64, released="", num_files=1, num_bytes=1)
    command = TestCommand()
    names = {
        trace_path(tmp_path, it, other, command=args)
        for it in (snapshot, replace(snapshot, digest="b" * 64))
        for other in (environment, replace(environment, digest="c" * 64))
        for args in (command, replace(command, args=("-x",)))
    }
    assert len(names) == 8
    assert trace_path(tmp_path, snapshot, environment, command=command) in names


marks = st.integers(0, 2**90)
stretches = st.builds(
    Stretch,
    kind=st.sampled_from(["module", "class", "function", "rest"]),
    qualname=st.text(max_size=5),
    line=st.integers(0, 999),
    lines=st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), max_size=3).map(tuple),
)
modules = st.builds(
    MarkedModule,
    path=st.text(max_size=5),
    first=st.integers(0, 99),
    stretches=st.lists(stretches, max_size=4).map(tuple),
)


@settings(deadline=None)
@given(
    st.lists(modules, max_size=3),
    st.dictionaries(st.text(max_size=9), st.tuples(marks, st.booleans()), max_size=5),
    marks,
)
def test_a_trace_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[MarkedModule],
    tests: dict[str, tuple[int, bool]],
    early: int,
):
    traced = TracedSuite(
        trace=SuiteTrace(
            modules=tuple(found),
            at_import=early,
            at_collection=early // 3,
            reached={key: hits for key, (hits, _) in tests.items()},
        ),
        passed=frozenset(key for key, (_, passed) in tests.items() if passed),
        cpu_s=1.25,
    )
    path = tmp_path_factory.mktemp("traces") / "it"
    write_trace(path, traced)
    assert read_trace(path) == traced


@given(st.sets(st.integers(0, 300)))
def test_a_set_of_marks_is_a_number(numbers: set[int]):
    assert list(each_mark(sum(1 << number for number in numbers))) == sorted(numbers)
