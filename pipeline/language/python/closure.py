"""Grow a deletion by what only the deleted code uses: its private helpers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pipeline.language.python.arms import Arm
from pipeline.language.python.references import Key, ReferenceIndex, find_keys
from pipeline.language.python.symbols import Definition, Span
from pipeline.language.python.usage import relatives_of
from pipeline.language.python.uses import Use

# Decorators that do not hand a helper to anybody else.
_HARMLESS = frozenset({
    "asynccontextmanager",
    "cache",
    "cached_property",
    "classmethod",
    "contextmanager",
    "dataclass",
    "lru_cache",
    "overload",
    "property",
    "setter",
    "staticmethod",
    "total_ordering",
    "wraps",
})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Code that is to be deleted.

    Example: `Gone(definitions=(…,), constants=(("a/b.py", "_CACHE"),), spans={"a/b.py": (…,)})`.
    """

    # The wanted ones first, then their users, stubs and helpers.
    definitions: tuple[Definition, ...]
    # Names with a plain assignment.
    constants: tuple[Key, ...]
    # Path -> lines that go.
    spans: dict[str, tuple[Span, ...]]
    # Uses whose element or registration goes from a statement that may stay.
    rows: frozenset[Use] = field(default_factory=frozenset)
    # Path and arm: what goes from functions that stay.
    arms: frozenset[tuple[str, Arm]] = field(default_factory=frozenset)

    def covers(self, use: Use) -> bool:
        """Tell whether a use goes too."""
        spans = self.spans.get(use.path, ())
        is_inside = any(span.first_line <= use.line <= span.last_line for span in spans)
        return is_inside or use in self.rows


def gather(
    definitions: Iterable[Definition],
    constants: Iterable[Key],
    *,
    index: ReferenceIndex,
    rows: Iterable[Use] = (),
    arms: Iterable[tuple[str, Arm]] = (),
) -> Gone:
    """Put definitions, their twins in stub files, constants, rows and arms together."""
    wanted = {(it.symbol.path, it.symbol.qualname): it for it in definitions}
    for path, qualname in list(wanted):
        if twin := index.definitions.get((f"{path}i", qualname)):
            wanted[f"{path}i", qualname] = twin
    keys = tuple(dict.fromkeys(constants))
    spans: dict[str, tuple[Span, ...]] = {}
    for (path, _), definition in wanted.items():
        spans[path] = spans.get(path, ()) + definition.spans
    for path, name in keys:
        spans[path] = (*spans.get(path, ()), index.scans[path].constants[name])
    kept = frozenset(arms)
    for path, arm in sorted(kept, key=lambda it: (it[0], it[1].span.first_line)):
        spans[path] = (*spans.get(path, ()), arm.span)
    return Gone(
        definitions=tuple(wanted.values()),
        constants=keys,
        spans=spans,
        rows=frozenset(rows),
        arms=kept,
    )


def grow(gone: Gone, index: ReferenceIndex, *, is_package_file: Callable[[str], bool]) -> Gone:
    """Add the private helpers of package code that nothing else uses, and in turn theirs."""
    grown = gone
    for key in _reached(gone, index):
        if is_package_file(key[0]) and _is_fetched_by_package(key, index, is_package_file):
            grown = _with_name(grown, key, index)
    for definition in gone.definitions:
        grown = _with_methods(grown, definition, index)
    return gone if grown == gone else grow(grown, index, is_package_file=is_package_file)


def _reached(gone: Gone, index: ReferenceIndex) -> list[Key]:
    """List the names of scanned modules that gone code mentions."""
    found: set[Key] = set()
    for path in gone.spans:
        for mention in index.scans[path].mentions:
            if gone.covers(mention.use):
                found |= find_keys(index, mention)
    return sorted(key for key in found if key[1] and key[0] in index.scans)


def _is_fetched_by_package(
    key: Key, index: ReferenceIndex, is_package_file: Callable[[str], bool]
) -> bool:
    """Tell whether only plain package modules import a name, and none exports it."""
    fetched = {binding.path for binding in index.imports.get(key, ())}
    is_inner = all(is_package_file(path) and not _is_initialiser(path) for path in fetched)
    return is_inner and key not in index.exports


def _with_name(gone: Gone, key: Key, index: ReferenceIndex) -> Gone:
    """Add a private top-level name if nothing that stays mentions it."""
    path, name = key
    definition = index.definitions.get(key)
    if not _is_private(name) or definition in gone.definitions or key in gone.constants:
        return gone
    if definition is not None:
        if definition.is_rebound or not _is_harmless(definition):
            return gone
        grown = _with(gone, index, definitions=[definition])
    else:
        scanned = index.scans[path]
        if name not in scanned.constants or len(scanned.bindings[name]) > 1:
            return gone
        grown = _with(gone, index, constants=[key])
    uses = [*index.uses.get(key, ()), *_loose_uses(name, index)]
    return grown if all(map(grown.covers, uses)) else gone


def _with(
    gone: Gone,
    index: ReferenceIndex,
    *,
    definitions: Iterable[Definition] = (),
    constants: Iterable[Key] = (),
) -> Gone:
    return gather(
        [*gone.definitions, *definitions],
        [*gone.constants, *constants],
        index=index,
        rows=gone.rows,
        arms=gone.arms,
    )


def _with_methods(gone: Gone, definition: Definition, index: ReferenceIndex) -> Gone:
    """Add the private methods of a method's class that nothing that stays mentions."""
    path, (owner, _, _) = definition.symbol.path, definition.symbol.qualname.rpartition(".")
    siblings = index.definitions[path, owner].members if owner else ()
    for name in filter(_is_private, siblings):
        helper = index.definitions.get((path, f"{owner}.{name}"))
        uses = _loose_uses(name, index)
        if helper is None or helper in gone.definitions or not any(map(gone.covers, uses)):
            continue
        is_free = not helper.is_rebound and _is_harmless(helper)
        grown = _with(gone, index, definitions=[helper])
        is_related = any(relatives_of(helper, index))
        if is_free and not is_related and all(map(grown.covers, uses)):
            gone = grown
    return gone


def _loose_uses(name: str, index: ReferenceIndex) -> list[Use]:
    """Return the uses whose object is unknown: attributes, strings, doctests."""
    return [*index.attributes.get(name, ()), *index.words.get(name, ())]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _is_harmless(definition: Definition) -> bool:
    return all(it.rpartition(".")[2] in _HARMLESS for it in definition.decorators)


def _is_initialiser(path: str) -> bool:
    return PurePosixPath(path).stem == "__init__"
