"""Read Java's class files: names, signatures and constants, as a decompiler would show them."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.piece import Data, Gap, Inner

MAGIC = b"\xca\xfe\xba\xbe"
# Java 1.1 to well beyond today's; other programs' files have the same magic number.
_VERSIONS = range(45, 100)
_UTF8, _STRING, _WIDE = 1, 8, frozenset({5, 6})
# Bytes behind the tag of a constant.
_SIZES = {
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4,
    15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2,
}  # fmt: skip
_STATIC = 0x0008
_TYPE = re.compile(r"(\[*)(?:L([^;]+);|([BCDFIJSZV]))")
_PRIMITIVES = {
    "B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long",
    "S": "short", "Z": "boolean", "V": "void",
}  # fmt: skip


class _BrokenError(ValueError):
    """Bytes that no compiler wrote."""


@dataclass(slots=True, kw_only=True)
class _Class:
    """What is read of a class file so far."""

    data: bytes
    at: int = 8
    # Texts of the constant pool, by number.
    texts: dict[int, str] = field(default_factory=dict)
    # Numbers of the texts that are string constants.
    strings: list[int] = field(default_factory=list)

    def number(self, size: int) -> int:
        raw = self.take(size)
        return int.from_bytes(raw, "big")

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise _BrokenError
        self.at += size
        return found


def is_class(head: bytes) -> bool:
    """Tell whether a file of this beginning is a class file."""
    return head[:4] == MAGIC and int.from_bytes(head[6:8], "big") in _VERSIONS


def class_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the signatures of a class file as Java writes them, its constants and all its names."""
    found = _Class(data=data[:])
    lines: list[str] = []
    try:
        _read_constants(found)
        lines = list(_signatures(found))
    except (_BrokenError, KeyError, struct.error):
        yield Gap(decoders=("class",), why="broken")
        yield Inner(label="class", data=data, form="binary")
    lines += [found.texts.get(number, "") for number in found.strings]
    lines += found.texts.values()
    text = "\n".join(lines).encode("utf-8", "replace")
    meter.count_decoded(len(text))
    yield Inner(label="class", data=text, form="text")


def _read_constants(found: _Class) -> None:
    count, number = found.number(2), 1
    while number < count:
        tag = found.number(1)
        if tag == _UTF8:
            # Their zero has two bytes, and large letters come as halves.
            raw = found.take(found.number(2)).replace(b"\xc0\x80", b"\0")
            found.texts[number] = raw.decode("utf-8", "replace")
        elif tag == _STRING:
            found.strings.append(found.number(2))
        elif tag in _SIZES:
            found.take(_SIZES[tag])
        else:
            raise _BrokenError
        number += 2 if tag in _WIDE else 1


def _signatures(found: _Class) -> Iterator[str]:
    """Yield `type name(type parameter, …)` of each method, and `type name` of each field."""
    found.take(6)
    found.take(2 * found.number(2))
    for is_method in (False, True):
        for _ in range(found.number(2)):
            flags, name, kind = found.number(2), found.number(2), found.number(2)
            first = 0 if flags & _STATIC else 1
            parameters = dict(_attributes(found, first=first))
            types = [_type(it) for it in _TYPE.finditer(found.texts[kind])]
            if is_method and types:
                shown = ", ".join(
                    f"{it} {parameters.get(place, '')}".strip()
                    for place, it in enumerate(types[:-1])
                )
                yield f"{types[-1]} {found.texts[name]}({shown})"
            elif types:
                yield f"{types[0]} {found.texts[name]}"


def _attributes(found: _Class, *, first: int, is_inside: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the place and name of each parameter that the attributes of a member tell.

    `first` is the slot of the first parameter: before it is the object itself.
    """
    for _ in range(found.number(2)):
        name, size = found.texts.get(found.number(2)), found.number(4)
        end = found.at + size
        if name == "Code" and not is_inside:
            found.take(4)
            found.take(found.number(4))
            found.take(8 * found.number(2))
            yield from _attributes(found, first=first, is_inside=True)
        elif name == "LocalVariableTable":
            yield from _variables(found, first=first)
        elif name == "MethodParameters":
            for place in range(found.number(1)):
                yield place, found.texts.get(found.number(2), "")
                found.take(2)
        found.at = end


def _variables(found: _Class, *, first: int) -> Iterator[tuple[int, str]]:
    """Yield the variables in order of their slots: parameters come first."""
    by_slot: dict[int, str] = {}
    for _ in range(found.number(2)):
        found.take(4)
        name = found.texts.get(found.number(2), "")
        found.take(2)
        by_slot.setdefault(found.number(2), name)
    yield from enumerate(by_slot[slot] for slot in sorted(by_slot) if slot >= first)


def _type(found: re.Match[str]) -> str:
    brackets, name, letter = found.groups()
    plain = name.replace("/", ".").rpartition(".")[2] if name else _PRIMITIVES[letter]
    return plain + "[]" * len(brackets)
