"""Read git's objects, loose and packed, whatever refers to them; nothing of git is run.

Keep and promisor files, bitmaps and indexes beside a pack make no difference: the pack holds all.
"""

import hashlib
import re
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress

from pipeline.leaks.budget import Budget, Meter
from pipeline.leaks.decode.deltas import BrokenDeltaError, added_text, apply_delta
from pipeline.leaks.decode.mapped import digest_of, find
from pipeline.leaks.decode.piece import Data, Gap, Inner
from pipeline.leaks.decode.streams import ZLIB, inflate
from pipeline.sandbox.protocol import MIB

PACK_MAGIC = b"PACK\0\0\0"
_LOOSE = re.compile(rb"(blob|tree|commit|tag) (\d{1,12})\0")
_VERSIONS = (b"\2", b"\3")
_HEADER_BYTES, _NAME_BYTES = 12, 20
_TYPES = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_BY_OFFSET, _BY_NAME = 6, 7
# Contents that deltas will ask for again, and the largest that is kept.
_KEPT_BYTES, _MAX_KEPT_BYTES = 64 * MIB, 8 * MIB
# Larger streams are inflated bit by bit.
_AT_ONCE_BYTES = 1 * MIB
_SHOWN = 12
_UNREADABLE = (zlib.error, ValueError, IndexError, KeyError)


def loose_header(head: bytes) -> re.Match[bytes] | None:
    """Find the header of a loose object, decompressed."""
    return _LOOSE.match(head)


def loose_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a loose object, decompressed."""
    header = loose_header(data[:32])
    assert header is not None
    meter.check()
    yield _part(header[1].decode(), data[header.end() :])


def find_pack(data: Data) -> int:
    """Return where in a file, such as a bundle, a pack with objects begins; -1 when none does."""
    position = find(data, PACK_MAGIC)
    while position >= 0 and not _is_pack(data, position):
        position = find(data, PACK_MAGIC, position + 1)
    return position


def _is_pack(data: Data, start: int) -> bool:
    """Tell whether an object follows: programs that read packs have their mark in them too."""
    if data[start + 7 : start + 8] not in _VERSIONS or not any(data[start + 8 : start + 12]):
        return False
    try:
        _Pack(data, start + _HEADER_BYTES, Meter(Budget())).locate()
    except _UNREADABLE:
        return False
    return True


def pack_parts(data: Data, meter: Meter, *, start: int = 0) -> Iterator[Inner | Gap]:
    """Yield every object of a pack, or of one that begins inside of a file.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    count = int.from_bytes(data[start + 8 : start + _HEADER_BYTES], "big")
    pack = _Pack(data, start + _HEADER_BYTES, meter)
    for number in range(count):
        meter.check()
        try:
            pack.locate()
        except _UNREADABLE:
            yield Gap(decoders=("git",), why="broken")
            break
        if pack.kinds[number] != _BY_NAME:
            yield pack.inner(number)
    yield from pack.late_inners()


class _Pack:
    """Owns what is known of a pack's objects; they are found one after another."""

    def __init__(self, data: Data, start: int, meter: Meter) -> None:
        # As the pack numbers them: four plain types, two of deltas.
        self.kinds = array("B")
        self._data = data
        self._at = start
        self._meter = meter
        self._by_offset: dict[int, int] = {}
        # Of each object: where its stream begins, its size, the beginning of its name.
        self._streams = array("Q")
        self._sizes = array("Q")
        self._names = array("Q")
        # Of deltas: the number of the base.
        self._bases: dict[int, int] = {}
        # Of deltas that name their base: the beginning of the name.
        self._wanted: dict[int, int] = {}
        self._kept: OrderedDict[int, tuple[str, Data]] = OrderedDict()
        self._kept_bytes = 0

    def locate(self) -> None:
        """Note what the next object is, and find its end.

        Raises:
            ValueError, IndexError, KeyError, zlib.error: it is none.
        """
        number, begin = len(self.kinds), self._at
        kind, size = self._header()
        base = wanted = None
        if kind == _BY_OFFSET:
            base = self._by_offset[begin - self._distance()]
        elif kind == _BY_NAME:
            wanted = _beginning(self._data[self._at : self._at + _NAME_BYTES])
            self._at += _NAME_BYTES
        elif kind not in _TYPES:
            raise ValueError(f"unknown type {kind}")
        raw, end = self._inflate(self._at, size)
        self._by_offset[begin] = number
        self.kinds.append(kind)
        self._streams.append(self._at)
        self._sizes.append(size)
        self._names.append(0)
        self._at = end
        if base is not None:
            self._bases[number] = base
        elif wanted is not None:
            self._wanted[number] = wanted
        else:
            self._keep(number, _TYPES[kind], raw)

    def inner(self, number: int) -> Inner | Gap:
        """Return the content of an object whose base is known, if it has one."""
        try:
            kind, content = self._content(number)
        except (BrokenDeltaError, zlib.error, ValueError):
            return Gap(decoders=("git:delta",), why="broken")
        name = _name(kind, content)
        self._names[number] = _beginning(name)
        return _part(kind, content, name)

    def late_inners(self) -> Iterator[Inner | Gap]:
        """Yield the deltas that name their base; of a base that is elsewhere, what they add."""
        found = True
        while self._wanted and found:
            numbers = {name: number for number, name in enumerate(self._names) if name}
            ready = [it for it, name in self._wanted.items() if name in numbers]
            found = bool(ready)
            for number in ready:
                self._bases[number] = numbers[self._wanted.pop(number)]
                yield self.inner(number)
        for number in self._wanted:
            self._meter.check()
            yield Gap(decoders=("git:delta",), why="broken")
            raw, _ = self._inflate(self._streams[number], self._sizes[number])
            with suppress(BrokenDeltaError):
                yield Inner(label="git:delta", data=added_text(raw), form="text")

    def _content(self, number: int) -> tuple[str, Data]:
        """Return type and content, through all deltas from the nearest content that is kept."""
        chain = []
        while number not in self._kept and number in self._bases:
            chain.append(number)
            number = self._bases[number]
        kind, content = self._kept.get(number) or self._plain(number)
        for delta in reversed(chain):
            raw, _ = self._inflate(self._streams[delta], self._sizes[delta])
            content = apply_delta(content, raw, meter=self._meter)
            self._keep(delta, kind, content)
        return kind, content

    def _plain(self, number: int) -> tuple[str, Data]:
        if self.kinds[number] not in _TYPES:
            raise ValueError("the base is not in the pack")
        raw, _ = self._inflate(self._streams[number], self._sizes[number])
        return _TYPES[self.kinds[number]], raw

    def _keep(self, number: int, kind: str, content: Data) -> None:
        """Keep a content for the deltas to come, and forget the oldest ones."""
        if len(content) > _MAX_KEPT_BYTES or number in self._kept:
            return
        self._kept[number] = (kind, content)
        self._kept_bytes += len(content)
        while self._kept_bytes > _KEPT_BYTES:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest)

    def _inflate(self, start: int, size: int) -> tuple[Data, int]:
        if size > _AT_ONCE_BYTES:
            stream = inflate(self._data, start, wbits=ZLIB, meter=self._meter)
            if stream.why or len(stream.data) != size:
                raise ValueError("a broken stream")
            return stream.data, stream.end
        engine = zlib.decompressobj()
        # No stream of these many bytes is longer.
        fed = self._data[start : start + size + size // 64 + 64]
        raw = engine.decompress(fed, size + 1)
        while not engine.eof and engine.unconsumed_tail and len(raw) <= size:
            raw += engine.decompress(engine.unconsumed_tail, 1)
        if not engine.eof or len(raw) != size:
            raise ValueError("a broken stream")
        self._meter.count_decoded(size)
        return raw, start + len(fed) - len(engine.unused_data)

    def _header(self) -> tuple[int, int]:
        """Read an object's type and size."""
        byte = self._byte()
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            byte = self._byte()
            size |= (byte & 0x7F) << shift
            shift += 7
        return kind, size

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _distance(self) -> int:
        """Read how far before a delta its base begins."""
        byte = self._byte()
        value = byte & 0x7F
        while byte & 0x80:
            byte = self._byte()
            value = ((value + 1) << 7) | (byte & 0x7F)
        return value


def _part(kind: str, content: Data, name: bytes | None = None) -> Inner:
    shown = (name or _name(kind, content)).hex()[:_SHOWN]
    if kind == "tree":
        # Names stand between binary hashes.
        return Inner(label=f"git:tree {shown}", data=content, form="binary")
    return Inner(label=f"git:{kind} {shown}", data=content)


def _name(kind: str, content: Data) -> bytes:
    header = f"{kind} {len(content)}\0".encode()
    return digest_of(content, hashlib.sha1(header, usedforsecurity=False))


def _beginning(name: bytes) -> int:
    return int.from_bytes(name[:8], "big")
