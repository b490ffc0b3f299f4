"""Find the statements that only choose between imports: `try`, `if sys.version_info`."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.bindings import assigned_name, import_bindings
from pipeline.language.python.symbols import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A statement at the top level with imports in its branches.

    Example: `Guard(span=Span(first_line=3, last_line=6), names=frozenset({"np"}))` of
    `try: import numpy as np` with `except ImportError: np = None`.
    """

    span: Span
    # What it binds: names that are imported in one branch, or private; empty when it does more.
    names: frozenset[str]


def guards_in(tree: ast.Module) -> Iterator[Guard]:
    """Yield the guards of a module; what serves type checkers alone is none."""
    for node in tree.body:
        if isinstance(node, ast.Try | ast.If) and not is_for_types(node):
            leaves = list(_leaves(node))
            if imported := set(_imported(leaves)):
                span = Span(first_line=node.lineno, last_line=node.end_lineno or node.lineno)
                yield Guard(span=span, names=_bound(leaves, imported))


def _bound(leaves: Sequence[ast.stmt], imported: set[str]) -> frozenset[str]:
    assigned = {name for leaf in leaves if (name := assigned_name(leaf))}
    flags = {it for it in assigned - imported if not it.startswith("_")}
    is_pure = not flags and all(map(_is_binding, leaves))
    return frozenset(imported | assigned if is_pure else ())


def is_for_types(node: ast.stmt) -> bool:
    """Tell whether a statement is `if TYPE_CHECKING`."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _leaves(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the simple statements and definitions of all branches."""
    if not isinstance(node, ast.Try | ast.If):
        yield node
        return
    handlers = node.handlers if isinstance(node, ast.Try) else []
    last = node.finalbody if isinstance(node, ast.Try) else []
    for body in (node.body, *(it.body for it in handlers), node.orelse, last):
        for inner in body:
            yield from _leaves(inner)


def _imported(leaves: Sequence[ast.stmt]) -> Iterator[str]:
    for leaf in leaves:
        if isinstance(leaf, ast.Import | ast.ImportFrom):
            yield from (it.name for it in import_bindings(leaf, path="", scope=""))


def _is_binding(leaf: ast.stmt) -> bool:
    return isinstance(leaf, ast.Import | ast.ImportFrom | ast.Pass) or bool(assigned_name(leaf))
