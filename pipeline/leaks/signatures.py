"""Find a function's name with all its parameters in order: in code, in quotes, in a binary."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

# Places of one name that are looked at in one text.
MAX_PLACES = 50
# Bytes after the name in which the parameters have to be: of any, and for each.
REACH, REACH_OF_EACH = 300, 150

_DEFINED = re.compile(rb"\bdef\s+$")
_OPENED = re.compile(rb"\s*[(\[]")
_BRACKETS = re.compile(rb"[()\[\]{}]")
_QUOTES = b"\"'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What is looked for."""

    key: int
    name: bytes
    # In order; without `self` and `cls`.
    parameters: tuple[bytes, ...]


def signatures_in_text(text: bytes, wanted: Iterable[Signature]) -> Iterator[int]:
    """Yield the keys of the signatures that stand in source, or in JSON one quoted word each.

    A call that names its arguments like the parameters is none: `def` has to stand before it.
    """
    for it in wanted:
        # Most texts have the name, and not all parameters.
        if all(name in text for name in it.parameters) and any(
            _is_defined(text, at, it) or _is_quoted(text, at, it) for at in _places(text, it)
        ):
            yield it.key


def signatures_in_binary(data: bytes, wanted: Iterable[Signature]) -> Iterator[int]:
    """Yield the keys of the signatures whose words stand near each other in order.

    The byte before a word may be its length, which can look like a letter.
    """
    for it in wanted:
        if it.parameters and any(
            _follow(data[at : at + _reach(it)], it.parameters, boundary=rb"(?<!\w\w)")
            for at in _places(data, it)
        ):
            yield it.key


def _places(text: bytes, wanted: Signature) -> Iterator[int]:
    """Yield the offsets after the name."""
    at = text.find(wanted.name)
    for _ in range(MAX_PLACES):
        if at < 0:
            return
        yield at + len(wanted.name)
        at = text.find(wanted.name, at + 1)


def _reach(wanted: Signature) -> int:
    return REACH + REACH_OF_EACH * len(wanted.parameters)


def _is_defined(text: bytes, at: int, wanted: Signature) -> bool:
    begin = at - len(wanted.name)
    before = text[max(begin - 12, 0) : begin]
    if not before[-1:].isspace() or not _DEFINED.search(before):
        return False
    header = _in_brackets(text[at : at + 4 * _reach(wanted)])
    return header is not None and _follow(header, wanted.parameters)


def _in_brackets(text: bytes) -> bytes | None:
    """Return what the brackets hold that a text begins with, after those of type parameters."""
    if not _OPENED.match(text):
        return None
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += 1 if match[0] in b"([{" else -1
        if depth <= 0 and match[0] == b")":
            return text[: match.end()]
    return None


def _is_quoted(text: bytes, at: int, wanted: Signature) -> bool:
    begin = at - len(wanted.name)
    if begin < 1 or text[begin - 1] not in _QUOTES or text[at : at + 1] != text[begin - 1 : begin]:
        return False
    quoted = tuple(b'"%s"' % it for it in wanted.parameters)
    window = text[at + 1 : at + _reach(wanted)].replace(b"'", b'"')
    return bool(quoted) and _follow(window, quoted, boundary=b"")


def _follow(text: bytes, parameters: tuple[bytes, ...], *, boundary: bytes = rb"(?<!\w)") -> bool:
    at = 0
    for it in parameters:
        found = _pattern(it, boundary).search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


@lru_cache(maxsize=2**12)
def _pattern(parameter: bytes, boundary: bytes) -> re.Pattern[bytes]:
    return re.compile(boundary + re.escape(parameter) + rb"(?!\w)")
