"""Answer where in a tree a symbol is used, imported and exported."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.language.python.bindings import Binding
from pipeline.language.python.layout import Layout, find_module, find_submodule, lay_out
from pipeline.language.python.scan import scan
from pipeline.language.python.symbols import Definition
from pipeline.language.python.uses import Mention, Scan, Use

# A global name of a module, as (path, name); the module itself has an empty name.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceIndex:
    """Who mentions what in a tree, with imports followed through re-exports and stars.

    What leads to a symbol through other modules is filed under each of them as well: a use of
    `pkg.take` counts for `("pkg/__init__.py", "take")` and for `("pkg/core.py", "take")`.
    """

    layout: Layout
    # Path -> what its module holds; files that do not parse are absent.
    scans: Mapping[str, Scan]
    # (path, qualified name) -> definition.
    definitions: Mapping[Key, Definition]
    # (path, name) -> uses by name or through a module.
    uses: dict[Key, list[Use]] = field(default_factory=dict)
    # (path, name) -> import statements that fetch it.
    imports: dict[Key, list[Binding]] = field(default_factory=dict)
    # (path, name) -> `__all__` entries that stand for it.
    exports: dict[Key, list[Key]] = field(default_factory=dict)
    # Attribute name -> uses on whatever object.
    attributes: dict[str, list[Use]] = field(default_factory=dict)
    # Name -> strings and doctests that contain it.
    words: dict[str, list[Use]] = field(default_factory=dict)
    # Class -> its bases inside the tree.
    parents: dict[Key, frozenset[Key]] = field(default_factory=dict)
    # Answers of `find_links`.
    links: dict[Key, frozenset[Key]] = field(default_factory=dict)


def index_tree(sources: Mapping[str, str], *, import_roots: Iterable[str] = ()) -> ReferenceIndex:
    """Index all `.py` and `.pyi` files of a tree, given as path -> text.

    Import roots are the folders that go on `sys.path`; packages elsewhere are found by their
    `__init__.py`.
    """
    paths = [path for path in sorted(sources) if path.endswith((".py", ".pyi"))]
    found = (scan(path, sources[path]) for path in paths)
    scans = {it.path: it for it in found if it is not None}
    index = ReferenceIndex(
        layout=lay_out(paths, import_roots=import_roots),
        scans=scans,
        definitions={
            (path, definition.symbol.qualname): definition
            for path, it in scans.items()
            for definition in it.definitions
        },
    )
    for it in scans.values():
        _enter(index, it)
    for (path, name), definition in index.definitions.items():
        if definition.bases:
            chains = (base.split(".") for base in definition.bases)
            index.parents[path, name] = frozenset(
                key
                for chain in chains
                for key in _reach(index, find_links(index, path, chain[0]), chain[1:])
            )
    return index


def find_links(index: ReferenceIndex, path: str, name: str) -> frozenset[Key]:
    """Follow a global name of a module through imports to all that it may stand for.

    The answer includes the name itself, is empty for names the module does not have, and holds
    (path, "") for modules.
    """
    key = (path, name)
    if key not in index.links:
        index.links[key] = frozenset(_follow(index, key, seen=set()))
    return index.links[key]


def find_target(index: ReferenceIndex, binding: Binding) -> frozenset[Key]:
    """Follow an import to all that it may fetch; empty when that is outside the tree."""
    module = find_module(index.layout, binding.module, importer=binding.path)
    if not module:
        return frozenset()
    return (
        find_links(index, module, binding.target) if binding.target else frozenset({(module, "")})
    )


def find_keys(index: ReferenceIndex, mention: Mention) -> set[Key]:
    """Follow a mention to all names and modules that it touches."""
    if not mention.imports:
        first = find_links(index, mention.use.path, mention.chain[0])
    else:
        first = frozenset(key for it in mention.imports for key in find_target(index, it))
    return _reach(index, first, mention.chain[1:])


def _follow(index: ReferenceIndex, key: Key, *, seen: set[Key]) -> set[Key]:
    path, name = key
    if key in seen:
        return set()
    seen.add(key)
    found: set[Key] = set()
    known = index.scans.get(path)
    bindings = known.bindings if known else {}
    twin = path.removesuffix("i")
    if name in bindings:
        found.add(key)
        for binding in bindings[name]:
            found |= _follow_import(index, binding, target=binding.target, seen=seen)
        if twin in index.scans and twin != path:
            found |= _follow(index, (twin, name), seen=seen)
    else:
        for star in bindings.get("*", ()) if not name.startswith("_") else ():
            found |= _follow_import(index, star, target=name, seen=seen)
        found |= {key} if found else set()
    if not found and (submodule := find_submodule(index.layout, path, name)):
        found = {(submodule, "")}
    return found


def _follow_import(
    index: ReferenceIndex, binding: Binding, *, target: str, seen: set[Key]
) -> set[Key]:
    if binding.kind != "import":
        return set()
    module = find_module(index.layout, binding.module, importer=binding.path)
    if not module:
        return set()
    if not target:
        return {(module, "")}
    found = _follow(index, (module, target), seen=seen)
    if not found and (submodule := find_submodule(index.layout, module, target)):
        # `from . import core` inside the package binds what it is about to load.
        found = {(submodule, "")}
    return found


def _enter(index: ReferenceIndex, found: Scan) -> None:
    for mention in found.mentions:
        for key in find_keys(index, mention):
            index.uses.setdefault(key, []).append(mention.use)
    for binding in found.imports:
        for key in find_target(index, binding) if binding.target != "*" else ():
            index.imports.setdefault(key, []).append(binding)
    for name in sorted(found.exports):
        for key in find_links(index, found.path, name):
            index.exports.setdefault(key, []).append((found.path, name))
    _merge(index.attributes, found.attributes)
    _merge(index.words, found.words)


def _merge(table: dict[str, list[Use]], uses: Mapping[str, list[Use]]) -> None:
    for name, places in uses.items():
        table.setdefault(name, []).extend(places)


def _reach(index: ReferenceIndex, first: Iterable[Key], attributes: Sequence[str]) -> set[Key]:
    """Follow attributes through modules and collect every key on the way."""
    keys = set(first)
    reached = set(keys)
    for attribute in attributes:
        modules = [path for path, name in keys if not name]
        keys = {key for path in modules for key in find_links(index, path, attribute)}
        reached |= keys
    return reached
