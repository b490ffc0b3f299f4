"""Bring a Feature's names back without what they do: the patch that must not solve a Task."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from pipeline.task.patch import apply_patch, make_patch
from pipeline.task.python_text import (
    FunctionNode,
    bodies_of,
    ending_of,
    first_line,
    last_line,
    must_parse,
    split_lines,
)
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import apply_changes

# What a function of a stub does.
RAISES = "raise NotImplementedError"
RETURNS_NOTHING = "return None"


def stub_patch(task: Task, snapshot: Mapping[str, bytes], *, body: str = RAISES) -> str:
    """Return the gold patch with the body of every function of the Feature replaced.

    Signatures, decorators and docstrings stay; of a class, so do its attributes.
    """
    shown = solve_tree(task, snapshot)
    whole = apply_changes(shown, apply_patch(shown, task.deletion.gold_patch))
    stubbed = dict(whole)
    for path in dict.fromkeys(symbol.path for symbol in task.feature.symbols):
        names = [it.qualname for it in task.feature.symbols if it.path == path]
        stubbed[path] = _stubbed(whole[path], names, body=body.encode())
    return make_patch(shown, stubbed)


def _stubbed(content: bytes, qualnames: Sequence[str], *, body: bytes) -> bytes:
    lines = split_lines(content)
    tree = must_parse(content)
    nodes = [it for name in qualnames for it in _functions(tree, name.split("."))]
    # From the end, so that the lines before a body are still those that were parsed.
    for node in sorted(nodes, key=lambda it: it.lineno, reverse=True):
        for first in _below_docstring(node)[:1]:
            start, end = first_line(first), last_line(node)
            text = lines[start - 1]
            indent = text[: len(text) - len(text.lstrip())]
            before = text[: first.col_offset] if start == first.lineno else indent
            lines[start - 1 : end] = [before + body + ending_of(lines[end - 1])]
    return b"".join(lines)


def _functions(tree: ast.Module, names: Sequence[str]) -> Iterator[FunctionNode]:
    """Yield the functions that a qualified name stands for; of a class, its methods."""
    for body in bodies_of(tree, names[:-1]):
        for node in body:
            if getattr(node, "name", "") == names[-1]:
                yield from _outermost(node)


def _outermost(node: ast.AST) -> Iterator[FunctionNode]:
    if isinstance(node, FunctionNode):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child)


def _below_docstring(node: FunctionNode) -> list[ast.stmt]:
    return node.body[ast.get_docstring(node, clean=False) is not None :]
