"""Tell the lines of a definition that are its code from those that are its interface."""

import ast

from pipeline.language.python.bindings import DEFINITIONS, DefinitionNode
from pipeline.language.python.symbols import Definition, nodes_named
from pipeline.language.python.text import parse, split_lines


def body_lines(definition: Definition, source: str) -> tuple[str, ...]:
    """Return the lines of code of a definition: no signatures, decorators, docstrings, comments."""
    tree = parse(source)
    if tree is None:
        return ()
    lines = split_lines(source)
    numbers: set[int] = set()
    for node in nodes_named(tree, definition.symbol.qualname):
        numbers |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for inner in ast.walk(node):
            if isinstance(inner, DEFINITIONS):
                numbers -= _interface(inner)
    texts = (lines[number - 1].strip() for number in sorted(numbers))
    return tuple(text for text in texts if text and not text.startswith("#"))


def _interface(node: DefinitionNode) -> set[int]:
    first = min([node.lineno, *(it.lineno for it in node.decorator_list)])
    body = node.body[0]
    last = body.lineno - 1
    if ast.get_docstring(node, clean=False) is not None:
        last = body.end_lineno or body.lineno
    return set(range(first, max(last, node.lineno) + 1))
