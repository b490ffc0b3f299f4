"""Find what a test function expects: the values, exceptions and truths that decide its outcome."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.task.record import SentinelKind

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Names of functions that take two values which must be equal, first and second.
EQUALITIES = frozenset({
    "assertEqual",
    "assertEquals",
    "assertAlmostEqual",
    "assertCountEqual",
    "assertDictEqual",
    "assertListEqual",
    "assertMultiLineEqual",
    "assertSequenceEqual",
    "assertSetEqual",
    "assertTupleEqual",
    "assert_equal",
    "eq_",
})
# Of those that take, first, a class that must be raised or warned of.
EXCEPTIONS = frozenset({
    "assertRaises",
    "assertRaisesRegex",
    "assertWarns",
    "assertWarnsRegex",
    "assert_raises",
    "raises",
    "warns",
})
TRUTHS = frozenset({"assertTrue", "assertFalse", "assert_", "ok_"})
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One thing that a test expects."""

    kind: SentinelKind
    # The value that something must equal, the exception that must come, or what must be true.
    value: ast.expr


def expectations(function: Function) -> list[Expectation]:
    """Return the expectations of a function, without those of functions inside, in order."""
    return [found for statement in function.body for found in expectations_of(statement)]


def expectations_of(statement: ast.stmt) -> list[Expectation]:
    """Return the expectations of one statement of a function, in order."""
    return list(_within(statement))


def _within(node: ast.AST) -> Iterator[Expectation]:
    if isinstance(node, NESTED):
        return
    if isinstance(node, ast.Assert):
        yield _asserted(node.test)
        return
    if isinstance(node, ast.Call) and (found := _called(node)) is not None:
        yield found
        return
    for child in ast.iter_child_nodes(node):
        yield from _within(child)


def _asserted(test: ast.expr) -> Expectation:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return _equality(left, right)
    return Expectation(kind="truth", value=test)


def _called(call: ast.Call) -> Expectation | None:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    match call.args:
        case [ast.Starred(), *_]:
            return None
        case [left, right, *_] if name in EQUALITIES and not isinstance(right, ast.Starred):
            return _equality(left, right)
        case [first, *_] if name in EXCEPTIONS:
            return Expectation(kind="exception", value=first)
        case [first, *_] if name in TRUTHS:
            return Expectation(kind="truth", value=first)
    return None


def _equality(left: ast.expr, right: ast.expr) -> Expectation:
    """Take the side that the test wrote down, and not what the code under test returned."""
    is_left = _has_call(right) and not _has_call(left)
    return Expectation(kind="equality", value=left if is_left else right)


def _has_call(node: ast.expr) -> bool:
    return any(isinstance(it, ast.Call) for it in ast.walk(node))
