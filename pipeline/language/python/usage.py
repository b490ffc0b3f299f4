"""Tell whether a symbol has users that would outlive it."""

import builtins
from collections.abc import Callable, Collection, Iterator

from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Definition
from pipeline.language.python.uses import Use


def is_used_elsewhere(
    definition: Definition,
    index: ReferenceIndex,
    *,
    within_package: Callable[[str], bool] | Collection[str],
) -> str:
    """Say in one line how surviving package code uses a symbol; empty when it does not.

    Imports, re-exports and `__all__` do not count, nor do uses inside the definition. Any
    attribute of a method's name counts, whatever the object, and so does any string that is the
    name or a dotted path to it.
    """
    is_package = within_package if callable(within_package) else within_package.__contains__
    symbol = definition.symbol
    if definition.is_rebound:
        return f"bound in another way in {symbol.path}"
    for use in uses_of(definition, index):
        if is_package(use.path) and not is_within(use, definition):
            return render(use)
    relative = next(relatives_of(definition, index), "")
    return f"related to {relative}" if relative else ""


def is_used_at_import(definition: Definition, index: ReferenceIndex) -> str:
    """Say in one line which file, tests included, needs a symbol to be imported; else empty."""
    early = (use for use in uses_of(definition, index) if use.at_import and use.kind != "string")
    return next((render(use) for use in early if not is_within(use, definition)), "")


def uses_of(definition: Definition, index: ReferenceIndex) -> list[Use]:
    """Return all uses of a symbol, those by its own body and by strings included."""
    symbol = definition.symbol
    by_name = (
        index.attributes.get(symbol.name, [])
        if "." in symbol.qualname
        else index.uses.get((symbol.path, symbol.name), [])
    )
    strings = [use for use in index.words.get(symbol.name, []) if use.kind == "string"]
    return [*by_name, *strings]


def is_within(use: Use, definition: Definition) -> bool:
    """Tell whether a use stands in a definition."""
    return use.path == definition.symbol.path and any(
        span.first_line <= use.line <= span.last_line for span in definition.spans
    )


def render(use: Use) -> str:
    """Describe a use in one line, such as `called at src/x.py:31 in parse`."""
    place = f"{use.kind} at {use.path}:{use.line}"
    return f"{place} in {use.scope}" if use.scope else place


def relatives_of(definition: Definition, index: ReferenceIndex) -> Iterator[str]:
    """Yield the members, as `path:Class.name`, that a method overrides or is overridden by."""
    owner, _, name = definition.symbol.qualname.rpartition(".")
    key = (definition.symbol.path, owner)
    if key not in index.definitions:
        return
    for base in index.definitions[key].bases:
        if hasattr(getattr(builtins, base, None), name):
            yield f"builtins:{base}.{name}"
    for path, other in sorted(_family(index, key)):
        if (path, other) in index.definitions and name in index.definitions[path, other].members:
            yield f"{path}:{other}.{name}"


def _family(index: ReferenceIndex, key: Key) -> set[Key]:
    children: dict[Key, list[Key]] = {}
    for child, parents in index.parents.items():
        for parent in parents:
            children.setdefault(parent, []).append(child)
    above = _closure(key, lambda it: index.parents.get(it, ()))
    below = _closure(key, lambda it: children.get(it, ()))
    return (above | below) - {key}


def _closure(start: Key, neighbours: Callable[[Key], Collection[Key]]) -> set[Key]:
    found: set[Key] = set()
    waiting = [start]
    while waiting:
        fresh = set(neighbours(waiting.pop())) - found
        found |= fresh
        waiting.extend(fresh)
    return found
