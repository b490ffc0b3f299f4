"""Shorten a test function for a solver: the first half of what it expects is shown."""

import ast
from collections.abc import Sequence

from pipeline.task.expectation import expectations_of
from pipeline.task.python_text import (
    FunctionNode,
    bodies_of,
    first_line,
    last_line,
    parse,
    split_lines,
)

# (line from 1, column in bytes) of where a cut begins and ends.
_Cut = tuple[tuple[int, int], tuple[int, int]]


def shorten(content: bytes, names: Sequence[str]) -> bytes | None:
    """Return a module with one test function cut short, every other byte as it was.

    A test with several expectations loses the statements after the first half of them; one with a
    single expectation for a list of parameters loses the second half of the list.

    Args:
        content: of the module.
        names: of the function's classes, from outside, and its own.

    Returns:
        None when nothing can be taken away.
    """
    tree = parse(content)
    found = [] if tree is None else _functions(tree, names)
    if len(found) != 1:
        return None
    cuts = _statements(found[0]) or _parameters(found[0])
    if not cuts:
        return None
    lines = split_lines(content)
    shown = _without(lines, cuts)
    return shown if parse(shown) is not None else None


def _functions(tree: ast.Module, names: Sequence[str]) -> list[FunctionNode]:
    return [
        node
        for body in bodies_of(tree, names[:-1])
        for node in body
        if isinstance(node, FunctionNode) and node.name == names[-1]
    ]


def _statements(function: FunctionNode) -> list[_Cut]:
    """Return the cut of the statements after the first half of the expectations."""
    telling = [it for it in function.body if expectations_of(it)]
    if len(telling) < 2:  # noqa: PLR2004  one half is shown, one is not
        return []
    last = telling[(len(telling) + 1) // 2 - 1]
    gone = function.body[function.body.index(last) + 1 :]
    begin, end = first_line(gone[0]), last_line(gone[-1])
    return [((begin, 0), (end + 1, 0))] if begin > last_line(last) else []


def _parameters(function: FunctionNode) -> list[_Cut]:
    """Return the cuts of the second half of the first list of parameters."""
    for mark in function.decorator_list:
        match mark:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[_, ast.List(elts=values) | ast.Tuple(elts=values)],
                keywords=keywords,
            ) if len(values) > 1:
                names = [it.value for it in keywords if it.arg == "ids"]
                return _halves(values, names)
    return []


def _halves(values: list[ast.expr], names: list[ast.expr]) -> list[_Cut]:
    """Cut the values, and what names them one by one, after the first half."""
    lists = [values, *(it.elts for it in names if isinstance(it, ast.List | ast.Tuple))]
    is_plain = all(len(it) == len(values) for it in lists) and not any(
        isinstance(value, ast.Starred) for it in lists for value in it
    )
    if not is_plain or len(lists) != 1 + len(names):
        return []
    num_shown = (len(values) + 1) // 2
    return [(_end(them[num_shown - 1]), _end(them[-1])) for them in lists]


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _without(lines: list[bytes], cuts: list[_Cut]) -> bytes:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    content = b"".join(lines)
    for (begin, left), (end, right) in sorted(cuts, reverse=True):
        content = content[: starts[begin - 1] + left] + content[starts[end - 1] + right :]
    return content
