"""Read the members of zip archives one after another: wheels, jars, eggs, zip applications.

What counts are the members' own headers, not the directory at the end: members that it does not
list, archives with a program in front and broken ones are read just so, and none is read twice.
"""

import bz2
import lzma
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.leaks.budget import Meter, Why
from pipeline.leaks.decode.growing import cut
from pipeline.leaks.decode.mapped import find
from pipeline.leaks.decode.piece import Data, Gap, Inner
from pipeline.leaks.decode.streams import (
    MEMORY_BYTES,
    RAW_DEFLATE,
    Stream,
    decompress,
    inflate,
    part_of,
    unzstd,
    xz_engine,
)

MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4x5H3I2H")
# A header that follows a member whose size is not told in front.
_NEXT = (b"PK\x07\x08", MAGIC, b"PK\x01\x02")
_STORED, _DEFLATED, _BZIP2, _LZMA, _ZSTD, _XZ = 0, 8, 12, 14, 93, 95
# Made by other programs only; Python's reads none of them.
_OTHERS = frozenset({1, 2, 3, 4, 5, 6, 9, 10, 96, 97, 98, 99})
_METHODS = _OTHERS | {_STORED, _DEFLATED, _BZIP2, _LZMA, _ZSTD, _XZ}
_MAX_VERSION, _MAX_NAME = 100, 4096
_ENCRYPTED, _SIZE_FOLLOWS = 1, 8
_UNKNOWN = 0xFFFFFFFF
_WIDE_SIZES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    name: str
    method: int
    flags: int
    # Where the content begins.
    start: int
    # Of the content as it is stored; None: not told.
    size: int | None


def zip_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of every member.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    position = find(data, MAGIC)
    while position >= 0:
        header = _header(data, position)
        if header is None:
            position = find(data, MAGIC, position + 1)
            continue
        stream = _content(data, header, meter)
        yield from part_of(f"zip:{header.name}", stream)
        position = find(data, MAGIC, max(stream.end, header.start))
        meter.check()


def holds_zip(data: Data) -> bool:
    """Tell whether an archive begins anywhere."""
    position = find(data, MAGIC)
    while position >= 0:
        if _header(data, position):
            return True
        position = find(data, MAGIC, position + 1)
    return False


def _header(data: Data, position: int) -> _Header | None:
    """Read the header of a member; None for bytes that only look like one."""
    raw = data[position : position + _HEADER.size]
    if len(raw) < _HEADER.size:
        return None
    version, flags, method, _, _, _, packed, size, name_size, extra_size = _HEADER.unpack(raw)
    start = position + _HEADER.size + name_size
    name = data[position + _HEADER.size : start]
    if version & 0xFF > _MAX_VERSION or method not in _METHODS or not 0 < name_size <= _MAX_NAME:
        return None
    if len(name) < name_size or min(name) < ord(" "):
        return None
    told: int | None = packed
    if _UNKNOWN in {packed, size}:
        told = _wide_size(data[start : start + extra_size])
    if flags & _SIZE_FOLLOWS and not packed:
        told = None
    return _Header(
        name=name.decode("utf-8", "replace"),
        method=method,
        flags=flags,
        start=start + extra_size,
        size=told,
    )


def _wide_size(extra: bytes) -> int | None:
    """Return the stored size from the extra field for what is over 4 GiB."""
    while len(extra) >= 4:  # noqa: PLR2004  an id and a size
        field, size = struct.unpack_from("<2H", extra)
        if field == _WIDE_SIZES and len(extra) >= 20:  # noqa: PLR2004  two sizes behind them
            return int(struct.unpack_from("<Q", extra, 12)[0])
        extra = extra[4 + size :]
    return None


def _content(data: Data, header: _Header, meter: Meter) -> Stream:
    if header.flags & _ENCRYPTED:
        return _unread(data, header, "encrypted")
    reader = _READERS.get(header.method)
    return _unread(data, header, "no reader") if reader is None else reader(data, header, meter)


def _stored(data: Data, header: _Header, meter: Meter) -> Stream:
    end = _end(data, header)
    if end - header.start > meter.budget.piece_bytes:
        return _unread(data, header, "too large")
    return Stream(data=cut(data, header.start, end, meter=meter), end=end, why=None)


def _inflated(data: Data, header: _Header, meter: Meter) -> Stream:
    return inflate(data, header.start, wbits=RAW_DEFLATE, meter=meter)


def _un_bzip2(data: Data, header: _Header, meter: Meter) -> Stream:
    return decompress(bz2.BZ2Decompressor(), data, header.start, meter=meter)


def _un_xz(data: Data, header: _Header, meter: Meter) -> Stream:
    return decompress(xz_engine(), data, header.start, meter=meter)


def _un_zstd(data: Data, header: _Header, meter: Meter) -> Stream:
    stored = _stored(data, header, meter)
    stream = unzstd(stored.data, meter)
    return Stream(data=stream.data, end=stored.end, why=stored.why or stream.why)


def _unread(data: Data, header: _Header, why: Why) -> Stream:
    return Stream(data=b"", end=_end(data, header), why=why)


def _end(data: Data, header: _Header) -> int:
    """Return where the content ends: as told, or at the next header."""
    if header.size is not None:
        return min(header.start + header.size, len(data))
    found = [find(data, magic, header.start) for magic in _NEXT]
    return min([at for at in found if at >= 0], default=len(data))


def _un_lzma(data: Data, header: _Header, meter: Meter) -> Stream:
    """Decompress a member whose settings stand before its stream."""
    settings = data[header.start : header.start + 9]
    if len(settings) < 9:  # noqa: PLR2004  version, size, and five bytes of settings
        return _unread(data, header, "broken")
    mode, dictionary = settings[4], int.from_bytes(settings[5:9], "little")
    if dictionary > MEMORY_BYTES:
        return _unread(data, header, "too large")
    chosen = {
        "id": lzma.FILTER_LZMA1,
        "dict_size": dictionary,
        "lc": mode % 9,
        "lp": mode // 9 % 5,
        "pb": mode // 45,
    }
    try:
        engine = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[chosen])
    except (lzma.LZMAError, ValueError):
        return _unread(data, header, "broken")
    end = _end(data, header)
    # Its end is known from its size alone.
    packed = cut(data, header.start + 9, end, meter=meter)
    stream = decompress(engine, packed, 0, meter=meter)
    return Stream(data=stream.data, end=end, why=None)


_READERS: dict[int, Callable[[Data, _Header, Meter], Stream]] = {
    _STORED: _stored,
    _DEFLATED: _inflated,
    _BZIP2: _un_bzip2,
    _LZMA: _un_lzma,
    _ZSTD: _un_zstd,
    _XZ: _un_xz,
}
