"""Copies of test functions: what they expect, and what planting leaves as it was."""

import ast
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.record import Sentinel
from pipeline.task.twins import Planted, find_sentinels, plant_twins

PATH = "tests/test_a.py"
ONE = Sentinel(test=f"{PATH}::test_a", number=0, kind="truth")


def sentinels_of(text: str, *names: str) -> list[tuple[str, int, str]]:
    found = find_sentinels({PATH: text}, tuple(f"{PATH}::{name}" for name in names))
    return [(it.test.removeprefix(f"{PATH}::"), it.number, it.kind) for it in found]


def plant(text: str, *names: str) -> Planted:
    """Plant a twin of each expectation of some tests, and a clone of each."""
    targets = tuple(f"{PATH}::{name}" for name in names)
    return plant_twins(
        {PATH: text.encode("utf-8", "surrogateescape")},
        sentinels=find_sentinels({PATH: text}, targets),
        clones=targets,
        names=(f"test_new_{number}" for number in count()),
    )


def functions(text: bytes) -> dict[str, Callable[[], None]]:
    """Run a module and return its functions."""
    space: dict[str, Callable[[], None]] = {}
    exec(text, space)
    return space


EXPECTATIONS = """
def test_a():
    x = f()
    assert x == 1, "message"
    assert 2 == f()
    assert x
    assert x < 3
    for y in range(3):
        with pytest.raises(ValueError, match="no"), open(x):
            assert y != x
    def inner(): assert x == 3
    helper(lambda: x == 4)
    pytest.raises(E, f, 1)
class TestB(unittest.TestCase):
    async def test_b(self):
        self.assertEqual(f(), {1: 2})
        with self.assertRaises(E) as caught: f()
        self.assertTrue(f())
        self.assertFalse(f())
        self.assertIn(1, f())
        self.assertEqual(*f())
    class TestC:
        def test_c(self): assert not f()
"""


def test_each_expectation_of_a_target_is_found_in_order():
    found = sentinels_of(EXPECTATIONS, "test_a", "TestB::test_b", "TestB::TestC::test_c")
    assert found == [
        ("test_a", 0, "equality"),
        ("test_a", 1, "equality"),
        ("test_a", 2, "truth"),
        ("test_a", 3, "truth"),
        ("test_a", 4, "exception"),
        ("test_a", 5, "truth"),
        ("test_a", 6, "exception"),
        ("TestB::test_b", 0, "equality"),
        ("TestB::test_b", 1, "exception"),
        ("TestB::test_b", 2, "truth"),
        ("TestB::test_b", 3, "truth"),
        ("TestB::TestC::test_c", 0, "truth"),
    ]


def test_parameters_of_a_target_do_not_count():
    text = "def test_a(x): assert x == 1"
    assert sentinels_of(text, "test_a[1]", "test_a[2::3]") == [("test_a", 0, "equality")]


SKIPPED = {
    "super": "class TestA:\n def test_a(self): super(); assert 1",
    "a private name": "class TestA:\n def test_a(self): assert self.__x",
    "hypothesis": "@given(st.text())\ndef test_a(x): assert x == x",
    "inherited": "class TestA(Base): pass",
    "conditional": "if True:\n def test_a(): assert 1",
    "no Python": "def test_a(:",
}


@pytest.mark.parametrize("text", SKIPPED.values(), ids=SKIPPED)
def test_what_cannot_be_copied_has_no_sentinel_and_leaves_its_module_alone(text: str):
    name = "TestA::test_a" if "class" in text else "test_a"
    assert sentinels_of(text, name) == []
    assert plant(text, name).files == {}


VALUES = ["True", "1", "-2.5", "1e300", "float('inf')", "2j", "'a'", "''", "b''", "[1]", "()",
          "(1, 2)", "{1}", "frozenset()", "{}", "{'a': [1]}", "None", "object", "range(3)",
          "float('nan')", "Name(1, 2)", "Counter('aab')"]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_a_twin_expects_another_value_and_a_clone_the_same(value: str):
    text = f"""
from collections import Counter, namedtuple
Name = namedtuple("Name", "a b")
def f(): return {value}
def test_a(): assert f() == {value}
"""
    planted = plant(text, "test_a")
    found = functions(planted.files[PATH])
    twin, clone = (it[0].rpartition("::")[2] for it in (planted.must_fail, planted.must_pass))
    with pytest.raises(AssertionError):
        found[twin]()
    if "nan" not in value:
        found[clone]()


def test_a_twin_keeps_the_type_of_what_is_expected():
    text = """
seen = []
class Spy:
    def __eq__(self, other): seen.append(type(other)); return True
def test_a():
    for value in (True, 1, 1.5, "a", b"a", [1], (1,), {1}, {1: 2}):
        assert Spy() == value
"""
    planted = plant(text, "test_a")
    found = functions(planted.files[PATH])
    found[planted.must_fail[0].rpartition("::")[2]]()
    assert found["seen"] == [bool, int, float, str, bytes, list, tuple, set, dict]


def test_a_twin_waits_for_an_exception_that_nothing_raises():
    text = "import pytest\ndef test_a():\n with pytest.raises(ValueError): int('a')\n"
    planted = plant(text, "test_a")
    found = functions(planted.files[PATH])
    with pytest.raises(ValueError, match="invalid literal"):
        found[planted.must_fail[0].rpartition("::")[2]]()
    found[planted.must_pass[0].rpartition("::")[2]]()


def test_methods_are_planted_in_their_class_alone():
    text = "class TestA:\n class TestB:\n  def test_a(self):\n   '''>>> 1'''\n   assert 1\n"
    planted = plant(text, "TestA::TestB::test_a")
    assert planted.must_fail == (f"{PATH}::TestA::TestB::test_new_0",)
    space = functions(planted.files[PATH])
    inner = space["TestA"].TestB  # type: ignore[attr-defined]
    assert {name for name in vars(inner) if name.startswith("test")} == {
        "test_a",
        "test_new_0",
        "test_new_1",
    }
    assert not [name for name in space if name.startswith("test")]
    # Nothing new for those who collect doctests.
    assert inner.test_new_0.__doc__ is None


def test_a_copy_that_cannot_be_defined_again_leaves_the_others_alone():
    text = "deco = lambda f: f\n@deco\ndef test_a(): assert 1\ndel deco\ndef test_b(): assert 2\n"
    planted = plant(text, "test_a", "test_b")
    found = functions(planted.files[PATH])
    assert planted.must_pass[0].rpartition("::")[2] not in found
    found[planted.must_pass[1].rpartition("::")[2]]()


def test_clones_and_twins_look_alike():
    text = "def test_a(): assert f() == 1\n"
    planted = plant(text, "test_a")
    module = ast.parse(planted.files[PATH])
    copies = [
        node
        for block in module.body
        if isinstance(block, ast.Try)
        for node in block.body
        if isinstance(node, ast.FunctionDef)
    ]
    shapes = set()
    for it in copies:
        it.name = ""
        for node in ast.walk(it):
            if isinstance(node, ast.Name):
                node.id = "f" if node.id == "f" else "wrapper"
        shapes.add(ast.dump(it))
    assert (len(copies), len(shapes)) == (2, 1)


def test_names_are_collected_like_those_of_the_originals():
    text = "def check_a(): assert 1\ndef test_a(): assert 1\n"
    planted = plant(text, "check_a", "test_a")
    assert [it.rpartition("::")[2].partition("_")[0] for it in planted.must_pass] == [
        "check",
        "test",
    ]


names = st.sampled_from(["test_a", "test_b"])
values = st.sampled_from([
    "1",
    "'ü\\n'",
    "f'{x!r:>{y}}'",
    "[*a, (b := 2)]",
    "{**d}",
    "x if y else z",
])
asserts = st.builds("assert f({}) == {}".format, values, values)
comments = st.sampled_from(["# ü\udcff\n", "\n", "\f\n", '"""x\n  y"""\n', "X = '''\r\n a'''\n"])
tests = st.builds("def {}(x=1):\n    {}\n    {}\n".format, names, asserts, asserts)


@given(st.lists(tests | comments, max_size=6).map("".join), st.sampled_from(["", "pass", "#"]))
def test_planting_adds_code_that_parses_after_what_stays_byte_for_byte(text: str, end: str):
    before = (text + end).encode("utf-8", "surrogateescape")
    for after in plant(text + end, "test_a", "test_b").files.values():
        assert after.startswith(before)
        old, new = (ast.parse(it).body for it in (before, after))
        assert len(new) > len(old)
        assert list(map(ast.dump, new[: len(old)])) == list(map(ast.dump, old))


def test_an_id_that_is_in_no_module_goes_missing():
    planted = plant_twins(
        {PATH: b"x = 1\n"}, sentinels=(ONE,), clones=(), names=iter(["test_x", *map(str, range(9))])
    )
    assert (planted.files, planted.must_fail) == ({}, (f"{PATH}::test_x",))


DEFERRED = """
def test_a(): assert f() == 1
def test_b(): assert f() == 2
class TestC:
    def test_c(self): assert f() == 3
    @staticmethod
    def test_d(): assert f() == 4
"""


def test_an_original_that_is_late_is_defined_behind_its_copies_and_stays_what_it_is() -> None:
    targets = tuple(f"{PATH}::{name}" for name in ("test_a", "test_b", "TestC::test_d"))
    planted = plant_twins(
        {PATH: DEFERRED.encode()},
        sentinels=find_sentinels({PATH: DEFERRED}, targets),
        clones=targets,
        names=(f"test_new_{number}" for number in count()),
        late=(targets[0], targets[2]),
    )
    space = functions(planted.files[PATH])
    names = [name for name in space if name.startswith("test_")]
    assert (names[0], names[-1], len(names)) == ("test_b", "test_a", 6)
    methods = [name for name in vars(space["TestC"]) if name.startswith("test_")]
    assert (methods[0], methods[-1], len(methods)) == ("test_c", "test_d", 4)
    assert isinstance(vars(space["TestC"])["test_d"], staticmethod)


def test_a_late_original_that_its_module_has_removed_breaks_nothing() -> None:
    text = "def test_a(): assert f() == 1\ndel test_a\n"
    target = f"{PATH}::test_a"
    names = (f"test_new_{number}" for number in count())
    planted = plant_twins(
        {PATH: text.encode()}, sentinels=(), clones=(target,), names=names, late=(target,)
    )
    assert "test_a" not in functions(planted.files[PATH])
