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
    parse_shared,
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
    return make_patch(shown, stub_tree(task, shown, body=body))


def stub_tree(task: Task, shown: Mapping[str, bytes], *, body: str) -> dict[str, bytes]:
    """Return the files that the patch makes of a solve tree.

    Of an option the functions take it again, and do without it as they do in the solve tree.
    """
    whole = apply_changes(shown, apply_patch(shown, task.deletion.gold_patch))
    stubbed = dict(whole)
    if task.feature.option:
        changed = (path for path in whole if path in shown and whole[path] != shown[path])
        return stubbed | {
            path: _ignoring(whole[path], shown[path], option=task.feature.option)
            for path in changed
        }
    for path in dict.fromkeys(symbol.path for symbol in task.feature.symbols):
        names = [it.qualname for it in task.feature.symbols if it.path == path]
        stubbed[path] = _stubbed(whole[path], names, body=body.encode())
    return stubbed


def _stubbed(content: bytes, qualnames: Sequence[str], *, body: bytes) -> bytes:
    lines = split_lines(content)
    tree = parse_shared(content)
    assert tree is not None, qualnames
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


def _ignoring(whole: bytes, shown: bytes, *, option: str) -> bytes:
    """Return a module with the signatures of one text, and the bodies of another.

    What adds a flag to a parser stays, unless it is also what asks for it.
    """
    lines, others = split_lines(whole), split_lines(shown)
    trees = parse_shared(whole), parse_shared(shown)
    if trees[0] is None or trees[1] is None:
        return whole
    bodies = dict(_named(trees[1]))
    pairs = [(node, bodies[name]) for name, node in _named(trees[0]) if name in bodies]
    changed = [it for it in pairs if _text(it[0], lines) != _text(it[1], others)]
    asking = [it for it in changed if option.encode() not in _text(it[0], lines)]
    is_flag = option.startswith("-")
    for node, other in sorted(
        (is_flag and asking) or changed, key=lambda it: it[0].lineno, reverse=True
    ):
        (start, end), (first, last) = (
            (first_line(it.body[0]), last_line(it)) for it in (node, other)
        )
        if start == node.body[0].lineno and first == other.body[0].lineno:
            before = lines[start - 1][: node.body[0].col_offset]
            text = others[first - 1][other.body[0].col_offset :]
            lines[start - 1 : end] = [before + text, *others[first:last]]
    return b"".join(lines)


def _text(node: FunctionNode, lines: Sequence[bytes]) -> bytes:
    return b"".join(lines[node.lineno - 1 : last_line(node)])


def _named(tree: ast.Module) -> Iterator[tuple[tuple[str, int], FunctionNode]]:
    """Yield the functions and methods of a module by qualified name and number among equals."""
    counts: dict[str, int] = {}
    for statement in tree.body:
        inner = statement.body if isinstance(statement, ast.ClassDef) else []
        prefix = f"{statement.name}." if isinstance(statement, ast.ClassDef) else ""
        for node in (statement, *inner):
            if isinstance(node, FunctionNode):
                name = prefix + node.name
                counts[name] = counts.get(name, 0) + 1
                yield (name, counts[name]), node


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
