"""One small mistake at a time, in the body of a function, and still Python."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.language.python.mutants import Mutant, mutants_of

ALL = frozenset(range(10_000))


def mutated(code: str, lines: frozenset[int] = ALL) -> dict[str, list[str]]:
    """Return what a function's body becomes, by the kind of the mistake."""
    content = f"def f(a, b):\n    {code}\n".encode()
    found: dict[str, list[str]] = {}
    for mutant in mutants_of(content, lines):
        text = mutant.apply(content)
        assert text is not None
        body = text.decode().removeprefix("def f(a, b):\n    ").removesuffix("\n")
        found.setdefault(mutant.mistake, []).append(body)
    return found


@pytest.mark.parametrize(
    ("code", "mistake", "texts"),
    [
        ("if a: x = b", "negated condition", ["if (not (a)): x = b"]),
        ("x = a if b else a", "negated condition", ["x = a if (not (b)) else a"]),
        ("x = a == b", "other comparison", ["x = a != b"]),
        ("x = (a) <= (b)", "other comparison", ["x = (a) < (b)"]),
        ("x = a is  not b", "other comparison", ["x = a is b"]),
        ("x = a not in b", "other comparison", ["x = a in b"]),
        ("x = a < b < 3.0", "other comparison", ["x = a <= b < 3.0"]),
        ("x = a[0]", "other constant", ["x = a[1]"]),
        ("x = 0x0f", "other constant", ["x = 16"]),
        ("a.append(b)", "dropped statement", ["pass"]),
        ("a.b = b", "dropped statement", ["pass"]),
        ("a[b] = b", "dropped statement", ["pass"]),
        ("a += b", "dropped statement", ["pass"]),
        ("raise a", "dropped statement", ["pass"]),
        ("return a", "nothing returned", ["return None"]),
        ("x = a(a, b)", "swapped arguments", ["x = a(b, a)"]),
        ("x = a(a, b, c=1.0)", "swapped arguments", ["x = a(b, a, c=1.0)"]),
        ("x = a and b", "and for or", ["x = a or b"]),
        ("x = (a) or (b) or a", "and for or", ["x = (a) and (b) or a"]),
        ("x = 'é' == b", "other comparison", ["x = 'é' != b"]),
    ],
)
def test_each_kind_of_mistake_is_made_where_it_can_be(code: str, mistake: str, texts: list[str]):
    assert mutated(code) == {mistake: texts}


@pytest.mark.parametrize(
    "code",
    [
        "x = a",  # a name that is then missing says nothing of the tests
        "return",
        "return None",
        "x = f'{a == 1}'",
        "while a < 1: a += 1",
        "x = a(b)",
        "x = a(b, b)",
        "x = a(*a, b)",
        "x: a[1] = b",
        "yield",
        "x = True",
        "x = (a == # is it?\n    b)",
    ],
)
def test_some_code_is_left_alone(code: str):
    assert mutated(code) == {}


def test_only_what_a_call_runs_is_changed():
    content = b"""
X = 1
@cached(2)
def f(a=3) -> at(4):
    @cached(5)
    def g(b=6):
        return 7
    class C:
        size = 8
        def h(self):
            return 9
    return 10
"""
    constants = [it for it in mutants_of(content, ALL) if it.mistake == "other constant"]
    assert [content[it.start : it.end] for it in constants] == [b"7", b"9", b"10"]
    assert [it.line for it in constants] == [7, 11, 12]


def test_only_the_given_lines_are_changed():
    content = b"def f(a):\n    a += 1\n    return 2\n"
    assert {it.line for it in mutants_of(content, {3})} == {3}
    assert mutants_of(content, set()) == ()


def test_what_this_python_cannot_read_has_no_mutants():
    assert mutants_of(b"def f(:\n    return 1\n", ALL) == ()


def test_a_mistake_that_is_no_python_is_none():
    mutant = Mutant(line=1, mistake="other constant", start=0, end=3, new=b"def")
    assert mutant.apply(b"a = 1\n") is None


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "1", "'x'", "(a,\n b)"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "<", "is not", "not in", "+"]), inner).map(
            lambda it: f"({it[0]}) {it[1]} ({it[2]})"
        ),
        st.tuples(inner, inner).map(lambda it: f"f({it[0]}, {it[1]})"),
        st.tuples(inner, inner).map(lambda it: f"[{it[0]} for a in b if {it[1]}]"),
    ),
    max_leaves=8,
)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_a_mutant_differs_in_one_place_and_means_something_else(values: list[str]):
    body = "".join(f"    x = ({value})\n" for value in values)
    content = f"def f(a, b):\n{body}    return x\n".encode()
    tree = ast.dump(ast.parse(content))
    for mutant in mutants_of(content, ALL):
        text = mutant.apply(content)
        assert text is not None
        assert ast.dump(ast.parse(text)) != tree
        assert text.startswith(content[: mutant.start])
        assert text.endswith(content[mutant.end :])
