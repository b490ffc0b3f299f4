"""What one run of a suite says of each test id, and which tests it runs."""

from itertools import pairwise

import pytest

from pipeline.task.origin import Variable
from pipeline.task.suite import SuiteRequest, SuiteRun
from tests.pipeline.conftest import MakeTree, RunFiles

OUTCOMES = """
import unittest
import pytest

def test_pass(): pass
def test_fail(): assert 1 == 2, "one is\\nnot two"
def test_name_error(): return gone
def test_exit(): raise SystemExit(0)
def test_silent(): raise type("Odd", (Exception,), {"__str__": lambda self: 1 / 0})
def test_bytes(): raise ValueError("a\\udcffb")
def test_skip(): pytest.skip("no")
@pytest.mark.skipif(True, reason="no")
def test_skipif(): pass
@pytest.mark.xfail
def test_xfail(): assert False
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_strict_xpass(): pass
def test_says_xfail(): pytest.xfail("yes")

@pytest.fixture
def broken(): raise LookupError("no such thing")
def test_fixture_error(broken): pass
def test_no_such_fixture(nowhere): pass

@pytest.fixture
def leaves_badly():
    yield
    raise OSError("cannot close")
def test_teardown_error(leaves_badly): pass
def test_fails_and_leaves_badly(leaves_badly): assert False

class TestSetup:
    def setup_method(self): raise KeyError("setup")
    def test_method(self): pass

class Unit(unittest.TestCase):
    def test_pass(self): self.assertEqual(1, 1)
    def test_fail(self): self.assertEqual(1, 2)
    @unittest.skip("no")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_one_subtest_fails(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)
    def test_subtests_pass(self):
        with self.subTest("only"):
            pass

def test_one_subtest_fails(subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number != 1
def test_subtests_fail_and_skip(subtests):
    with subtests.test("first"):
        raise ValueError("first")
    with subtests.test("second"):
        pytest.skip("second")
def test_a_subtest_is_skipped(subtests):
    with subtests.test("only"):
        pytest.skip("only")
def test_subtests_pass(subtests):
    with subtests.test("only"):
        pass
"""  # fmt: skip

# Outcome, class of the exception and its first line, by name.
EXPECTED = {
    "test_pass": ("passed", "", ""),
    "test_fail": ("failed", "AssertionError", "one is"),
    "test_name_error": ("failed", "NameError", "name 'gone' is not defined"),
    "test_exit": ("failed", "SystemExit", "0"),
    "test_silent": ("failed", "Odd", ""),
    "test_bytes": ("failed", "ValueError", "a\\udcffb"),
    "test_skip": ("skipped", "", ""),
    "test_skipif": ("skipped", "", ""),
    "test_xfail": ("xfailed", "", ""),
    "test_xpass": ("xpassed", "", ""),
    "test_strict_xpass": ("failed", "", ""),
    "test_says_xfail": ("xfailed", "", ""),
    "test_fixture_error": ("error", "LookupError", "no such thing"),
    "test_no_such_fixture": (
        "error",
        "FixtureLookupError",
        "('nowhere', <FixtureRequest for <Function test_no_such_fixture>>)",
    ),
    "test_teardown_error": ("error", "OSError", "cannot close"),
    "test_fails_and_leaves_badly": ("error", "OSError", "cannot close"),
    "TestSetup::test_method": ("error", "KeyError", "'setup'"),
    "Unit::test_pass": ("passed", "", ""),
    "Unit::test_fail": ("failed", "AssertionError", "1 != 2"),
    "Unit::test_skip": ("skipped", "", ""),
    "Unit::test_expected": ("xfailed", "", ""),
    "Unit::test_unexpected": ("failed", "Failed", "Unexpected success"),
    "Unit::test_one_subtest_fails": ("failed", "AssertionError", "1 == 1"),
    "Unit::test_subtests_pass": ("passed", "", ""),
    "test_one_subtest_fails": ("failed", "AssertionError", "assert 1 != 1"),
    "test_subtests_fail_and_skip": ("failed", "ValueError", "first"),
    "test_a_subtest_is_skipped": ("passed", "", ""),
    "test_subtests_pass": ("passed", "", ""),
}

LONG = "x" * 5000
IDS = f"""
import pytest

@pytest.mark.parametrize("text", ["a b", "a[b]c::d", "größe", "two\\nlines", "", "{LONG}", "\\t"])
def test_odd(text): pass
@pytest.mark.parametrize("x", [1, 2])
@pytest.mark.parametrize("y", "ab")
def test_grid(x, y): assert (x, y) != (2, "b")
def test_größe(): pass
CALLS = []
def test_twice(): CALLS.append(1); assert len(CALLS) < 2
class TestInner:
    class TestMost:
        def test_deep(self): pass
"""  # fmt: skip

TWICE = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makeitem(collector, name, obj):
    outcome = yield
    items = outcome.get_result()
    if name == "test_twice":
        outcome.force_result(items + [pytest.Function.from_parent(collector, name=name)])
"""

ODD = {
    "conftest.py": TWICE,
    "tests/test_ids.py": IDS,
    "tests/with space/test_space.py": "def test_in(): pass",
    "README.txt": ">>> 1 + 1\n2\n",
}
ODD_ARGS = ("--doctest-glob=*.txt",)


@pytest.fixture(scope="module")
def zoo(run_files: RunFiles) -> SuiteRun:
    return run_files({"test_zoo.py": OUTCOMES})


@pytest.fixture(scope="module")
def odd(run_files: RunFiles) -> SuiteRun:
    return run_files(ODD, args=ODD_ARGS)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_outcome_has_its_class_of_exception_and_first_line(zoo: SuiteRun, name: str):
    key = f"test_zoo.py::{name}"
    outcome = zoo.by_id()[key]
    message = zoo.messages.get(key, "").partition(": ")[2]
    assert (outcome.outcome, outcome.exception, message) == EXPECTED[name]


def test_each_test_is_reported_once_in_order_of_collection(zoo: SuiteRun):
    assert [outcome.id for outcome in zoo.outcomes] == list(zoo.collected)
    assert len(set(zoo.collected)) == len(EXPECTED)
    assert (zoo.ended, zoo.finished.exit_code, zoo.finished.limit) == (True, 1, None)
    assert all(0 <= outcome.duration_s < 5 for outcome in zoo.outcomes)


def test_odd_ids_survive_and_equal_ones_are_told_apart(odd: SuiteRun):
    ids = [outcome.id.removeprefix("tests/test_ids.py::") for outcome in odd.outcomes]
    assert len(ids) == len(set(ids)) == 17
    assert f"test_odd[{LONG}]" in ids
    assert {"test_odd[a b]", "test_odd[a[b]c::d]", "test_odd[two\\nlines]", "test_odd[]"} <= set(
        ids
    )
    assert {"test_größe", "test_odd[gr\\xf6\\xdfe]", "TestInner::TestMost::test_deep"} <= set(ids)
    assert {"tests/with space/test_space.py::test_in", "README.txt::README.txt"} <= set(ids)
    table = {key.removeprefix("tests/test_ids.py::"): it.outcome for key, it in odd.by_id().items()}
    assert (table["test_twice"], table["test_twice #2"]) == ("passed", "failed")
    assert (table["test_grid[a-2]"], table["test_grid[b-2]"]) == ("passed", "failed")


def test_given_ids_alone_are_run_whatever_they_are(odd: SuiteRun, run_files: RunFiles):
    for ids in (odd.collected, odd.collected[::3], odd.collected[-1:]):
        again = run_files(ODD, SuiteRequest(ids=ids), args=ODD_ARGS)
        assert again.collected == ids
        assert {it.id for it in again.outcomes} == set(ids)
    # The second of two equal ids can be run without the first.
    only = ("tests/test_ids.py::test_twice #2",)
    again = run_files(ODD, SuiteRequest(ids=only), args=ODD_ARGS)
    assert [(it.id, it.outcome) for it in again.outcomes] == [(*only, "passed")]


def test_ids_can_be_given_when_the_command_names_other_files(run_files: RunFiles):
    files = {f"test_{name}.py": "def test(): pass" for name in "abc"}
    run = run_files(files, SuiteRequest(ids=("test_b.py::test",)), args=tuple(files))
    assert run.collected == ("test_b.py::test",)
    assert run.finished.exit_code == 0


def test_an_id_that_does_not_exist_is_missing_and_nothing_else_runs(run_files: RunFiles):
    run = run_files({"test_a.py": "def test(): pass"}, SuiteRequest(ids=("test_a.py::gone",)))
    assert (run.ended, run.outcomes) == (True, ())


def test_ids_are_relative_to_the_tree_whatever_folder_is_tested(run_files: RunFiles):
    run = run_files({"deep/tests/test_a.py": "def test(): pass"}, args=("deep/tests",))
    assert run.collected == ("deep/tests/test_a.py::test",)


def test_files_that_do_not_collect_are_reported_while_the_others_run(run_files: RunFiles):
    run = run_files({
        "pkg.py": "there = 1",
        "tests/test_a_import.py": "from pkg import there, gone",
        "tests/test_b_syntax.py": "def broken(:",
        "tests/test_c_name.py": "nowhere",
        "tests/test_d_good.py": "def test(): pass",
    })
    errors = dict(run.collect_errors)
    assert list(errors) == [f"tests/test_{it}.py" for it in ("a_import", "b_syntax", "c_name")]
    import_error, syntax_error, name_error = errors.values()
    assert import_error.startswith("ImportError: cannot import name 'gone' from 'pkg'")
    assert syntax_error.startswith("SyntaxError: ")
    assert name_error == "NameError: name 'nowhere' is not defined"
    assert [(it.id, it.outcome) for it in run.outcomes] == [
        ("tests/test_d_good.py::test", "passed")
    ]
    assert (run.ended, run.finished.exit_code) == (True, 1)


def test_collecting_runs_no_test(run_files: RunFiles):
    files = {"test_a.py": "def test_a(): assert False\ndef test_b(): print('ran', flush=True)"}
    run = run_files(files, SuiteRequest(collect_only=True), args=("-s",))
    assert run.collected == ("test_a.py::test_a", "test_a.py::test_b")
    assert (run.outcomes, run.ended, run.finished.exit_code) == ((), True, 0)
    assert b"ran" not in run.finished.output.split()


def test_the_order_is_drawn_from_the_seed_and_modules_stay_together(run_files: RunFiles):
    body = "\n".join(f"def test_{number}(): pass" for number in range(5))
    files = {f"test_{name}.py": body for name in "abcd"}
    plain, *shuffled = (
        [it.id for it in run_files(files, SuiteRequest(shuffle=seed)).outcomes]
        for seed in (None, 1, 1, 2)
    )
    assert plain == sorted(plain)
    assert shuffled[0] == shuffled[1] != shuffled[2]
    for order in shuffled:
        assert sorted(order) == plain != order
        modules = [key.split("::")[0] for key in order]
        assert sum(a != b for a, b in pairwise(modules)) == 3


def test_the_settings_of_a_run_reach_the_suite(run_files: RunFiles):
    code = """
import os, sys
def test_it():
    assert os.environ["FLAVOUR"] == "sweet and sour"
    assert os.environ["PYTHONHASHSEED"] == "7"
    assert "REGROW_RESULTS_FD" not in os.environ
    assert sys.path[0] == os.getcwd() == "/work"
"""
    run = run_files(
        {"test_a.py": code},
        SuiteRequest(hash_seed=7),
        variables=(Variable(name="FLAVOUR", value="sweet and sour"),),
    )
    assert [it.outcome for it in run.outcomes] == ["passed"], run.messages


def test_a_run_leaves_its_tree_as_it_was(make_tree: MakeTree, run_files: RunFiles):
    code = """
import pathlib
def test_it():
    pathlib.Path("data.txt").unlink()
    pathlib.Path("test_a.py").write_text("")
    pathlib.Path("new").mkdir()
    pathlib.Path("new/file").write_text("new")
"""
    files = {"test_a.py": code, "data.txt": "data"}
    tree = make_tree(files)
    run = run_files(tree)
    assert [it.outcome for it in run.outcomes] == ["passed"]
    assert {it.relative_to(tree).as_posix(): it.read_text() for it in tree.rglob("*")} == files
