"""Find the functions, classes and methods that a module defines."""

import ast
import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.bindings import (
    DEFINITIONS,
    DefinitionNode,
    assigned_name,
    bindings_in,
)
from pipeline.task.record import Symbol, SymbolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of lines, counted from 1, both ends included."""

    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A symbol with all statements that define it.

    Overloads, property setters and other statements of one name in one body are one Definition.

    Example: `Definition(symbol=Symbol(qualname="Box.size", …), spans=(getter, setter), …)`.
    """

    # Its lines reach from the first span to the last.
    symbol: Symbol
    # One for each statement, decorators included.
    spans: tuple[Span, ...]
    # No part of the qualified name starts with an underscore.
    is_public: bool
    # The scope binds the name in other ways too: an assignment, an import, a twin under `if`.
    is_rebound: bool
    # Dotted names, calls without their arguments, in order, each once.
    decorators: tuple[str, ...]
    # Lines of code: no docstrings, blank lines, comments, decorators.
    num_body_lines: int
    # Cleaned of indentation; empty when there is none.
    docstring: str
    # Classes only: dotted names of the bases, calls and subscripts left out.
    bases: tuple[str, ...]
    # Classes only: names that the body binds.
    members: tuple[str, ...]


def definitions_in(tree: ast.Module, *, path: str, lines: Sequence[str]) -> tuple[Definition, ...]:
    """Return the definitions at the top level and directly in its classes, by their first line.

    What stands under `if`, `try` or in a function is left out.
    """
    code = _code_lines(tree, lines=lines)
    found = list(_definitions(tree.body, path=path, prefix="", code=code))
    bodies: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bodies.setdefault(node.name, []).extend(node.body)
    for owner, body in bodies.items():
        found.extend(_definitions(body, path=path, prefix=f"{owner}.", code=code))
    return tuple(sorted(found, key=lambda it: it.symbol.first_line))


def outermost(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Leave out the methods of classes that are there themselves."""
    kept = tuple(definitions)
    keys = {(it.symbol.path, it.symbol.qualname) for it in kept}
    return tuple(
        it for it in kept if (it.symbol.path, it.symbol.qualname.rpartition(".")[0]) not in keys
    )


def constants_in(tree: ast.Module) -> dict[str, Span]:
    """Return the lines of the plain assignments at the top level, by name."""
    named = ((assigned_name(node), node) for node in tree.body)
    return {
        name: Span(first_line=node.lineno, last_line=node.end_lineno or node.lineno)
        for name, node in named
        if name
    }


def nodes_named(tree: ast.Module, qualname: str) -> Iterator[DefinitionNode]:
    """Yield the statements that define a top-level name or a method."""
    owner, _, name = qualname.rpartition(".")
    bodies = [tree.body]
    if owner:
        bodies = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner]
    for body in bodies:
        for node in body:
            if isinstance(node, DEFINITIONS) and node.name == name:
                yield node


def span_of(node: DefinitionNode) -> Span:
    """Return the lines of a definition, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return Span(first_line=first, last_line=node.end_lineno or node.lineno)


def dotted(node: ast.expr) -> str:
    """Render a name or attribute chain, looking through calls and subscripts; else empty."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value)
            return f"{owner}.{attr}" if owner else ""
        case ast.Call(func=value) | ast.Subscript(value=value):
            return dotted(value)
    return ""


def _definitions(
    body: Sequence[ast.stmt], *, path: str, prefix: str, code: frozenset[int]
) -> Iterator[Definition]:
    groups: dict[str, list[DefinitionNode]] = {}
    for node in body:
        if isinstance(node, DEFINITIONS):
            groups.setdefault(node.name, []).append(node)
    num_bindings: dict[str, int] = {}
    for binding in bindings_in(body, path=path, scope=""):
        num_bindings[binding.name] = num_bindings.get(binding.name, 0) + 1
    for name, nodes in groups.items():
        yield Definition(
            symbol=_symbol(nodes, path=path, prefix=prefix),
            spans=tuple(map(span_of, nodes)),
            is_public=not any(part.startswith("_") for part in f"{prefix}{name}".split(".")),
            is_rebound=num_bindings[name] > len(nodes),
            decorators=_decorators(nodes),
            num_body_lines=sum(_num_code_lines(node, code=code) for node in nodes),
            docstring=next(filter(None, map(_docstring, nodes)), ""),
            bases=tuple(filter(None, (dotted(b) for n in nodes for b in getattr(n, "bases", ())))),
            members=_members(nodes),
        )


def _symbol(nodes: Sequence[DefinitionNode], *, path: str, prefix: str) -> Symbol:
    kind: SymbolKind = "method" if prefix else "function"
    if isinstance(nodes[-1], ast.ClassDef):
        kind = "class"
    spans = [span_of(node) for node in nodes]
    return Symbol(
        path=path,
        qualname=prefix + nodes[0].name,
        kind=kind,
        first_line=spans[0].first_line,
        last_line=spans[-1].last_line,
    )


def _decorators(nodes: Sequence[DefinitionNode]) -> tuple[str, ...]:
    names = [dotted(decorator) for node in nodes for decorator in node.decorator_list]
    return tuple(dict.fromkeys(filter(None, names)))


def _docstring(node: DefinitionNode) -> str:
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def _members(nodes: Sequence[DefinitionNode]) -> tuple[str, ...]:
    classes = (node for node in nodes if isinstance(node, ast.ClassDef))
    found = (
        binding.name for node in classes for binding in bindings_in(node.body, path="", scope="")
    )
    return tuple(sorted(set(found)))


def _code_lines(tree: ast.Module, *, lines: Sequence[str]) -> frozenset[int]:
    documented: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
            doc = node.body[0]
            documented.update(range(doc.lineno, (doc.end_lineno or doc.lineno) + 1))
    numbered = enumerate(map(str.strip, lines), start=1)
    return frozenset(n for n, text in numbered if text and text[0] != "#") - documented


def _num_code_lines(node: DefinitionNode, *, code: frozenset[int]) -> int:
    last_line = node.end_lineno or node.lineno
    return sum(1 for line in range(node.body[0].lineno, last_line + 1) if line in code)
