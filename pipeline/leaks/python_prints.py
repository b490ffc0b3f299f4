"""Take the fingerprints of a Python module, symbol by symbol."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.leaks.code import (
    anchors_of,
    docstring_of,
    elements_in,
    outline_of,
    parameters_of,
    shape_of,
    texts_in,
    walk_code,
    without_docstring,
)
from pipeline.leaks.normalise import plain_text, without_hash_comments
from pipeline.leaks.symbol import SymbolPrints, keys_of, with_keys
from pipeline.leaks.weigh import DEPENDENCE, name_key, text_key, told_by, weigh_text
from pipeline.leaks.words import KEY_BITS
from pipeline.task.python_text import FunctionNode, first_line, last_line, parse_shared, split_lines

# The name of the code object of a module.
MODULE = "<module>"
SHARE_OF_MODULE = 0.3
# That a pair, a node of a shape is there tells something even where its name does not.
BITS_OF_PAIR, BITS_OF_NODE = 0.25, 0.1
# Of the key of a shape, how many are of the outline.
_OUTLINE_BITS = 12
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (ast.If, ast.Try, ast.With)


def python_prints(path: str, content: bytes) -> tuple[SymbolPrints, ...] | None:
    """Return the fingerprints of each definition of a module, and of the code outside them.

    None when this Python cannot read it, or its expressions are nested too deep.
    """
    tree = parse_shared(content)
    if tree is None:
        return None
    try:
        return _prints_of(tree, path=path, content=content)
    except RecursionError:
        return None


def _prints_of(tree: ast.Module, *, path: str, content: bytes) -> tuple[SymbolPrints, ...]:
    module = _Module(path=path, lines=_bare_lines(tree, content))
    found: dict[str, SymbolPrints] = {}
    for prints in module.symbols(tree):
        earlier = found.get(prints.symbol)
        found[prints.symbol] = _merged(earlier, prints) if earlier else prints
    return tuple(found.values())


def _bare_lines(tree: ast.Module, content: bytes) -> list[bytes]:
    """Return the lines of a module without comments and docstrings."""
    lines = split_lines(without_hash_comments(plain_text(content)))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and (text := docstring_of(node)) is not None:
            for number in range(text.lineno, last_line(text) + 1):
                lines[number - 1] = b"\n"
    return lines


def _merged(one: SymbolPrints, other: SymbolPrints) -> SymbolPrints:
    """Join the statements that define one name: overloads, a getter and its setter."""
    merged = with_keys(other, lambda kind: {**keys_of(one, kind), **keys_of(other, kind)})
    functions = [it for it in (one, other) if it.trees]
    # What is looked for is either of the two.
    common = set.intersection(*(set(it.anchors) for it in functions)) if functions else set()
    return replace(merged, anchors=tuple(it for it in other.anchors if it in common))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A module that is read."""

    path: str
    # Without comments and docstrings.
    lines: list[bytes]

    def symbols(self, tree: ast.Module) -> Iterator[SymbolPrints]:
        """Yield the prints of all that a module defines, a name perhaps several times."""
        loose: list[ast.stmt] = []
        for node in _statements(without_docstring(tree.body)):
            name = _assigned_name(node)
            if isinstance(node, FunctionNode):
                yield self._function(node, node.name)
            elif isinstance(node, ast.ClassDef):
                yield from self._class(node, node.name)
            elif name == "__all__":
                continue
            elif name:
                # Its name stands in its only line, and would count twice.
                yield replace(self._prints(name, [node], owner=MODULE), names={})
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                loose.append(node)
        yield self._prints("", loose, owner=MODULE, docstring=docstring_of(tree))

    def _class(self, node: ast.ClassDef, qualname: str) -> Iterator[SymbolPrints]:
        own: list[ast.stmt] = []
        for it in _statements(without_docstring(node.body)):
            if isinstance(it, FunctionNode):
                yield self._function(it, f"{qualname}.{it.name}")
            elif isinstance(it, ast.ClassDef):
                yield from self._class(it, f"{qualname}.{it.name}")
            else:
                own.append(it)
        yield self._prints(qualname, own, owner=node.name, docstring=docstring_of(node))

    def _function(self, node: FunctionNode, qualname: str) -> SymbolPrints:
        body = without_docstring(node.body)
        prints = self._prints(qualname, body, owner=node.name, docstring=docstring_of(node))
        parameters = parameters_of(node)
        return replace(
            prints,
            parameters=parameters,
            anchors=anchors_of(node),
            signatures=_signature(node.name, parameters),
            trees={shape_key(node): _told_by_shape(node, prints)} if body else {},
        )

    def _prints(
        self,
        qualname: str,
        body: Sequence[ast.stmt],
        *,
        owner: str,
        docstring: ast.Expr | None = None,
    ) -> SymbolPrints:
        code = weigh_text(b"".join(map(self._text_of, body)))
        nodes = [it for statement in body for it in (statement, *walk_code(statement))]
        name = qualname.rpartition(".")[2]
        return SymbolPrints(
            symbol=f"{self.path}:{qualname}",
            name=name,
            lines=code.lines,
            grams=code.runs,
            codes=_pairs(owner, nodes),
            phrases=_phrases(docstring),
            literals=weigh_text("\n".join(texts_in(nodes)).encode("utf-8", "replace")).lines,
            names={name_key(name): told_by([name])[name]} if name else {},
        )

    def _text_of(self, node: ast.stmt) -> bytes:
        """Return the lines of a statement, without what else stands in its first."""
        first, *rest = self.lines[first_line(node) - 1 : last_line(node)]
        is_whole = first_line(node) < node.lineno or not first[: node.col_offset].strip()
        return b"".join((first if is_whole else first[node.col_offset :], *rest, b"\n"))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, and those of blocks that hold definitions in their place."""
    for node in body:
        if isinstance(node, _BLOCKS) and any(isinstance(it, _DOCUMENTED) for it in ast.walk(node)):
            below = (it for it in ast.iter_child_nodes(node) if isinstance(it, ast.stmt))
            handled = (it.body for it in getattr(node, "handlers", ()))
            yield from _statements([*below, *(it for body in handled for it in body)])
        else:
            yield node


def _assigned_name(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _pairs(owner: str, nodes: Sequence[ast.AST]) -> dict[int, float]:
    """Return what the code objects of a name hold, each name and constant with that name."""
    # A module's code object holds much else.
    part = DEPENDENCE * (SHARE_OF_MODULE if owner == MODULE else 1.0)
    told = told_by(elements_in(nodes))
    return {
        pair_key(owner, element): round(bits * part + BITS_OF_PAIR, 2)
        for element, bits in told.items()
        if bits * part >= BITS_OF_PAIR
    }


def _phrases(docstring: ast.Expr | None) -> dict[int, float]:
    if docstring is None:
        return {}
    text = ast.literal_eval(docstring.value)
    weighed = weigh_text(text.encode("utf-8", "replace"))
    return weighed.lines | weighed.runs


def _told_by_shape(node: FunctionNode, prints: SymbolPrints) -> float:
    """Return what finding a shape tells: by what it names, and by how large it is."""
    size = sum(1 for _ in walk_code(node))
    return round(sum(prints.codes.values()) + BITS_OF_NODE * size, 2)


def pair_key(owner: str, element: str) -> int:
    """Return the key of a name or constant that the code object of a name holds."""
    return text_key("code", (owner, element))


def signature_key(name: str, parameters: Sequence[str]) -> int:
    """Return the key of a name with all its parameters."""
    return text_key("signature", (name, *parameters))


def shape_key(node: FunctionNode) -> int:
    """Return the key of what a function does, whatever its local names.

    It begins with the key of the outline, which is had for much less than the rest.
    """
    rest = text_key("shape", (shape_of(node),)) >> _OUTLINE_BITS
    return outline_key(node) << (KEY_BITS - _OUTLINE_BITS) | rest


def outline_key(node: FunctionNode) -> int:
    """Return the key of the kinds of a function's statements."""
    return text_key("outline", (outline_of(node),)) >> (KEY_BITS - _OUTLINE_BITS)


def outlines_of(shapes: Iterable[int]) -> frozenset[int]:
    """Return the keys of the outlines of some shapes."""
    return frozenset(key >> (KEY_BITS - _OUTLINE_BITS) for key in shapes)


def _signature(name: str, parameters: Sequence[str]) -> dict[int, float]:
    """Return a name with its parameters; without any it is no more than the name."""
    told = told_by({name, *parameters})
    bits = told.pop(name) + DEPENDENCE * sum(told.values())
    return {signature_key(name, parameters): round(bits, 2)} if parameters else {}
