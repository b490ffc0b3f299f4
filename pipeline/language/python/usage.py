"""Find what uses a symbol, and what it is related to."""

import argparse
import builtins
import collections
import collections.abc
import datetime as dt
import io
import json
import logging
import string
import threading
from collections.abc import Callable, Collection, Iterator

from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Definition
from pipeline.language.python.uses import Use

# Where classes have bases whose methods are overridden, and asked for, under the same name.
_KNOWN_BASES = (
    *(builtins, argparse, collections, collections.abc, dt, io, json, logging, string),
    threading,
)


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


def holds(definition: Definition, use: Use) -> bool:
    """Tell whether a use stands in a definition."""
    return definition.symbol.path == use.path and any(
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
        for module in _KNOWN_BASES:
            if hasattr(getattr(module, base.rpartition(".")[2], None), name):
                yield f"{module.__name__}:{base}.{name}"
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
