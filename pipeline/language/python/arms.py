"""Find the statements and branches inside functions that can go without the rest of them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.symbols import Span
from pipeline.language.python.text import split_lines

_Owner = ast.match_case | ast.ExceptHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A statement that is only a call, or one branch of a statement that chooses.

    Example: `Arm(span=Span(first_line=7, last_line=9), body=Span(first_line=8, last_line=9))`.
    """

    # What goes: the branch with its condition.
    span: Span
    # What runs when it is chosen; of a call, the call.
    body: Span

    @property
    def is_call(self) -> bool:
        """Whether it is a statement rather than a branch."""
        return self.span == self.body


def arms_in(tree: ast.Module, source: str) -> tuple[Arm, ...]:
    """Return the arms of all functions of a module, outer ones before those in them.

    Each may go alone or with others: of an `if` that has an `else` the first branch is none, of
    `match` and `try` the last. What shares a line with other code is none either.
    """
    lines = split_lines(source)
    return tuple(
        arm
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for arm in _in_suite(function.body, lines)
    )


def innermost(arms: Sequence[Arm], line: int) -> Arm | None:
    """Return the smallest arm that holds a line; of a branch that is one call, the branch."""
    around = [it for it in arms if it.span.first_line <= line <= it.span.last_line]
    if not around:
        return None
    smallest = min(around, key=_num_lines)
    return max((it for it in around if it.body == smallest.body), key=_num_lines)


def _num_lines(arm: Arm) -> int:
    return arm.span.last_line - arm.span.first_line + 1


def _in_suite(body: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Arm]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if _stands_alone(node, body):
            yield from _of_statement(node, lines)
        for inner in _suites(node):
            yield from _in_suite(inner, lines)


def _stands_alone(node: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    """Tell whether no other statement of the suite shares a line with it."""
    mine = range(node.lineno, _last(node) + 1)
    return not any(it is not node and (it.lineno in mine or _last(it) in mine) for it in body)


def _of_statement(node: ast.stmt, lines: Sequence[str]) -> Iterator[Arm]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield Arm(span=_span(node.lineno, _last(node)), body=_span(node.lineno, _last(node)))
        case ast.If():
            if is_elif(node, lines) or not _has_else(node, lines):
                yield _arm(node.lineno, node.body)
        case ast.Match():
            yield from (_arm(it.pattern.lineno, it.body) for it in node.cases[:-1])
        case ast.Try():
            yield from (_arm(it.lineno, it.body) for it in node.handlers[:-1])


def is_elif(node: ast.stmt, lines: Sequence[str]) -> bool:
    """Tell whether a statement goes on with the `if` that it is in the `else` of."""
    return isinstance(node, ast.If) and lines[node.lineno - 1].lstrip().startswith("elif")


def _has_else(node: ast.If, lines: Sequence[str]) -> bool:
    """Tell whether an `if`, with all that goes on with it, ends in an `else`."""
    match node.orelse:
        case []:
            return False
        case [ast.If() as other] if is_elif(other, lines):
            return _has_else(other, lines)
    return True


def _arm(first_line: int, body: Sequence[ast.stmt]) -> Arm:
    last = _last(body[-1])
    return Arm(span=_span(first_line, last), body=_span(body[0].lineno, last))


def _suites(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    owners: list[ast.stmt | _Owner] = [node]
    owners += [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    for owner in owners:
        for field in ("body", "orelse", "finalbody"):
            yield getattr(owner, field, None) or []


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _span(first_line: int, last_line: int) -> Span:
    return Span(first_line=first_line, last_line=last_line)
