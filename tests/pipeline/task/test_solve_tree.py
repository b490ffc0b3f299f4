"""What a solver is shown of the tests, and which of them can be kept from it."""

import ast
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.record import Grading
from pipeline.task.solve_tree import (
    choose_hidden,
    choose_shortened,
    function_of,
    hide_tests,
    is_removable,
    restore_tests,
)

MODULE = b"""\
'''Doc.'''
import pytest\r
\x0c
def test_one():
    assert 1

@pytest.mark.parametrize("a", [
    1,
])
async def test_two(a):
    x = '''
  text'''

class TestAll:
\tdef test_three(self):
\t\tpass

class TestSome:
    helper = 1
    # before
    def test_four(self): assert 1
    # after
    def test_five(self):
        assert 2
def test_last(): pass"""

LEFT = b"""\
'''Doc.'''
import pytest\r
\x0c

class TestAll:
\tpass

class TestSome:
    helper = 1
    # before
    # after
    def test_five(self):
        assert 2
"""

HIDDEN = (
    "tests/test_a.py::test_two[1]",
    "tests/test_a.py::test_two[2]",
    "tests/test_a.py::TestAll::test_three",
    "tests/test_a.py::TestSome::test_four",
    "tests/test_a.py::test_last",
    "tests/test_a.py::test_one #2",
)


def hiding(tests: Iterable[str], *, shortened: tuple[str, ...] = ()) -> Grading:
    return Grading(
        plugins=(), alarms=(), hidden=tuple(tests), shortened=shortened, sentinels=(), clones=()
    )


def test_hidden_functions_are_cut_out_and_no_other_byte_changes():
    tree = {"tests/test_a.py": MODULE, "tests/test_b.py": MODULE}
    shown = hide_tests(tree, hiding(HIDDEN))
    assert shown["tests/test_a.py"].replace(b"\n\n\n", b"\n\n") == LEFT
    assert shown["tests/test_b.py"] == MODULE
    assert hide_tests(tree, hiding(())) == tree


def test_every_set_of_hidden_functions_leaves_a_module():
    names = list(dict.fromkeys(map(function_of, HIDDEN)))

    @given(st.sets(st.sampled_from(names)))
    def check(chosen: set[str]) -> None:
        shown = hide_tests({"tests/test_a.py": MODULE}, hiding(sorted(chosen)))["tests/test_a.py"]
        left = {node.name for node in ast.walk(ast.parse(shown)) if hasattr(node, "name")}
        gone = {name.rpartition("::")[2] for name in chosen}
        assert gone.isdisjoint(left)
        assert {it.rpartition("::")[2] for it in names} - gone <= left

    check()


SUITE = {
    "tests/test_a.py": b"""\
def test_alone(): pass
def test_called(): pass
test_alias = test_called
def test_named(): pass
NAMES = ["test_named"]
def test_imported(): pass
if True:
    def test_inner(): pass
def test_twice(): pass
def test_twice(): pass
class Base:
    def test_method(self): pass
class Derived(Base): pass
class Alone:
    def test_method(self): pass
class Shared:
    def test_method(self): pass
""",
    "tests/test_b.py": b"from tests.test_a import test_imported, other\n",
    "tests/test_c.py": b"import tests.test_a as a\nclass More(a.Shared): pass\n",
    "tests/test_bad.py": b"def test_x(: pass\n",
    "pkg/core.py": b"def test_no(): pass\n",
}


@pytest.mark.parametrize(
    ("name", "can_go"),
    [
        ("tests/test_a.py::test_alone", True),
        ("tests/test_a.py::test_called", False),
        ("tests/test_a.py::test_named", False),
        ("tests/test_a.py::test_imported", False),
        ("tests/test_a.py::test_inner", False),
        ("tests/test_a.py::test_twice", False),
        ("tests/test_a.py::Base::test_method", False),
        ("tests/test_a.py::Derived::test_method", False),
        ("tests/test_a.py::Alone::test_method", True),
        ("tests/test_a.py::Shared::test_method", False),
        ("tests/test_a.py::gone", False),
        ("tests/test_bad.py::test_x", False),
        ("tests/gone.py::test_x", False),
        ("pkg/core.py::test_no", False),
        ("pkg/core.py::pkg.core.f", False),
        ("README.md", False),
    ],
)
def test_only_a_function_that_stands_alone_can_be_hidden(name: str, can_go: bool):
    assert is_removable(name, SUITE) == can_go


def functions(number: int) -> dict[str, bytes]:
    lines = (f"def test_{it}(a): pass\n" for it in range(number))
    return {"tests/test_a.py": "".join(lines).encode()}


def ids(number: int) -> tuple[str, ...]:
    return tuple(f"tests/test_a.py::test_{it}[{a}]" for it in range(number) for a in "xy")


@pytest.mark.parametrize(("num", "num_hidden"), [(1, 0), (2, 1), (3, 1), (7, 1), (8, 2), (40, 10)])
def test_a_quarter_of_the_functions_is_hidden_with_all_their_parameters(num: int, num_hidden: int):
    hidden = choose_hidden(ids(num), functions(num), seed=0, task_id="a")
    assert len({function_of(key) for key in hidden}) == num_hidden
    assert len(hidden) == 2 * num_hidden
    assert hidden == choose_hidden(ids(num), functions(num), seed=0, task_id="a")


def test_the_choice_follows_the_seed_and_the_task():
    def draw(seed: int, task_id: str) -> tuple[str, ...]:
        return choose_hidden(ids(40), functions(40), seed=seed, task_id=task_id)

    assert len({draw(0, "a"), draw(1, "a"), draw(0, "b")}) == 3


def test_what_cannot_be_cut_out_is_never_hidden():
    targets = (*ids(2), "pkg/core.py::pkg.core.f", "pkg/core.py::pkg.core.g")
    for seed in range(10):
        hidden = choose_hidden(targets, functions(2), seed=seed, task_id="a")
        assert {function_of(key) for key in hidden} < set(map(function_of, ids(2)))
        assert hidden


def test_tests_of_the_snapshot_replace_those_of_a_work_tree():
    snapshot = {"tests/test_a.py": b"a", "pkg/a.py": b"old", "setup.cfg": b"c"}
    work = {"tests/test_b.py": b"b", "pkg/a.py": b"new", "conftest.py": b""}
    assert restore_tests(snapshot, work) == {
        "tests/test_a.py": b"a",
        "pkg/a.py": b"new",
        "setup.cfg": b"c",
    }


PARTLY = b"""\
@mark.parametrize("a", [1, 2])
def test_halved(a): assert f(a)

def test_whole(): assert f(3)
"""


def test_a_shortened_function_stays_when_some_of_its_parameters_are_hidden():
    name = "tests/test_a.py::test_halved"
    grading = hiding((f"{name}[2]",), shortened=(name,))
    shown = hide_tests({"tests/test_a.py": PARTLY}, grading)["tests/test_a.py"]
    assert shown == PARTLY.replace(b"[1, 2]", b"[1]")


def test_only_a_function_that_can_be_cut_is_shortened():
    files = {"tests/test_a.py": PARTLY}
    targets = ("tests/test_a.py::test_whole", "tests/test_a.py::test_halved[1]", "README.md")
    chosen = choose_shortened(targets, files, seed=0, task_id="a")
    assert chosen == ("tests/test_a.py::test_halved",)
    assert choose_shortened(targets[:1], files, seed=0, task_id="a") == ()
