"""Describe a definition by its interface: no line of its body."""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.bindings import DEFINITIONS, DefinitionNode, assigned_name
from pipeline.language.python.docstrings import examples_of, first_paragraph, prose_of
from pipeline.language.python.layout import module_name
from pipeline.language.python.references import ReferenceIndex, find_links
from pipeline.language.python.symbols import Definition, dotted, nodes_named
from pipeline.language.python.text import parse
from pipeline.task.record import SymbolKind

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_CONSTRUCTORS = ("__init__", "__new__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One way to call a function.

    Example: `Signature(decorators=("@staticmethod",), text="def take(n: int, seq=()) -> list")`.
    """

    # With the `@`, without arguments.
    decorators: tuple[str, ...]
    # On one line, without the colon.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method as its class's users see it."""

    name: str
    # One for each overload or accessor.
    signatures: tuple[Signature, ...]
    # First paragraph of the docstring.
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A symbol's interface.

    Example: `Description(import_paths=("toolz.countby", "toolz.recipes.countby"), …)`.
    """

    kind: SymbolKind
    # Dotted paths it can be imported from, the best first; of a method, those of its class plus it.
    import_paths: tuple[str, ...]
    # One for each overload or accessor; the constructor's of a class.
    signatures: tuple[Signature, ...]
    # Prose of the docstring, no code.
    docstring: str
    # Its doctests.
    examples: str
    # The rest is empty but for classes. Decorators of the class, then its bases, as written.
    decorators: tuple[str, ...]
    bases: tuple[str, ...]
    # Public methods, in order.
    methods: tuple[Method, ...]
    # Public names assigned or annotated in the body.
    attributes: tuple[str, ...]
    # Special methods besides the constructors.
    special_methods: tuple[str, ...]


def describe(
    definition: Definition,
    source: str,
    *,
    index: ReferenceIndex,
    is_package_file: Callable[[str], bool],
) -> Description:
    """Describe a definition found in the source.

    Raises:
        ValueError: the source does not hold it.
    """
    symbol = definition.symbol
    nodes = tuple(nodes_named(parse(source) or ast.Module([], []), symbol.qualname))
    if not nodes:
        raise ValueError(f"{symbol.path} has no {symbol.qualname}")
    body = [node for owner in nodes if isinstance(owner, ast.ClassDef) for node in owner.body]
    methods = _grouped(body)
    is_class = symbol.kind == "class"
    constructors = [node for name in _CONSTRUCTORS for node in methods.get(name, ())]
    return Description(
        kind=symbol.kind,
        import_paths=import_paths(definition, index, is_package_file=is_package_file),
        signatures=_signatures(constructors if is_class else nodes),
        docstring=prose_of(definition.docstring),
        examples=examples_of(definition.docstring),
        decorators=tuple(f"@{name}" for name in definition.decorators) if is_class else (),
        bases=tuple(ast.unparse(base) for owner in nodes for base in _bases(owner)),
        methods=tuple(_methods(methods)),
        attributes=tuple(_attributes(body)),
        special_methods=tuple(name for name in methods if _is_special(name)),
    )


def import_paths(
    definition: Definition,
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> tuple[str, ...]:
    """Return the dotted paths of a symbol: public ones first, then the shortest."""
    symbol = definition.symbol
    owner, _, rest = symbol.qualname.partition(".")
    key = (symbol.path, owner)
    own = f"{module_name(index.layout, symbol.path)}.{owner}"
    found = {own}
    # Other names than its own come from `import … as` at module level.
    names = {owner} | {it.name for it in index.imports.get(key, ()) if not it.scope}
    for path, scanned in index.scans.items():
        if path.endswith(".py") and is_package_file(path):
            offered = names if path.endswith("__init__.py") else names & scanned.exports
            linked = (name for name in offered if key in find_links(index, path, name))
            found |= {f"{module_name(index.layout, path)}.{name}" for name in linked}
    ordered = sorted(found, key=lambda it: (_is_hidden(it), it.count("."), len(it), it))
    return tuple(f"{path}.{rest}" if rest else path for path in ordered)


def _signatures(nodes: Iterable[DefinitionNode]) -> tuple[Signature, ...]:
    functions = (node for node in nodes if isinstance(node, FunctionNode))
    return tuple(
        Signature(decorators=tuple(_decorators(node)), text=_signature(node)) for node in functions
    )


def _methods(groups: dict[str, list[DefinitionNode]]) -> Iterator[Method]:
    for name, nodes in groups.items():
        if name.startswith("_") or isinstance(nodes[0], ast.ClassDef):
            continue
        texts = (ast.get_docstring(node) for node in nodes)
        summary = first_paragraph(next(filter(None, texts), ""))
        yield Method(name=name, signatures=_signatures(nodes), summary=summary)


def _attributes(body: Sequence[ast.stmt]) -> Iterator[str]:
    names = (assigned_name(node) for node in body)
    yield from dict.fromkeys(name for name in names if name and not name.startswith("_"))


def _grouped(body: Sequence[ast.stmt]) -> dict[str, list[DefinitionNode]]:
    groups: dict[str, list[DefinitionNode]] = {}
    for node in body:
        if isinstance(node, DEFINITIONS):
            groups.setdefault(node.name, []).append(node)
    return groups


def _signature(node: FunctionNode) -> str:
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{keyword} {node.name}({ast.unparse(node.args)}){returns}"


def _decorators(node: FunctionNode) -> Iterator[str]:
    yield from (f"@{name}" for name in map(dotted, node.decorator_list) if name)


def _bases(node: DefinitionNode) -> list[ast.expr]:
    return node.bases if isinstance(node, ast.ClassDef) else []


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _CONSTRUCTORS


def _is_hidden(path: str) -> bool:
    return any(part.startswith("_") for part in path.split("."))
