"""Read the members of tar and ar archives where they lie."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.growing import cut
from pipeline.leaks.decode.piece import Data, Gap, Inner

AR_MAGIC = b"!<arch>\n"
_BLOCK = 512
_AR_HEADER = 60
# Where a header says its own sum, spaces standing in for it, and what it is of.
_SUM = slice(148, 156)
_WIDE = 0x80
_LONG_NAME, _PAX, _FILES = b"L", b"xg", b"\x0007S"
_PAX_PATH = re.compile(rb"\d+ path=([^\n]*)\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A regular file in an archive."""

    name: str
    # Where its content stands.
    start: int
    end: int


def is_tar(data: Data) -> bool:
    """Tell whether a header of tar comes first."""
    return _size(data[:_BLOCK]) is not None


def tar_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of every regular file.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    return _parts("tar", data, tar_members(data), meter)


def ar_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of every member: Debian's packages, libraries for linking.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    return _parts("ar", data, _ar_members(data), meter)


def tar_members(data: Data, *, start: int = 0, end: int | None = None) -> Iterator[Member | Gap]:
    """Yield the regular files of an archive that stands in a range of bytes."""
    position, stop = start, len(data) if end is None else end
    name = ""
    while position + _BLOCK <= stop:
        header = data[position : position + _BLOCK]
        position += _BLOCK
        if not any(header):
            continue
        size = _size(header)
        if size is None:
            yield Gap(decoders=("tar",), why="broken")
            return
        kind, content_end = header[156:157], position + size
        if kind in _LONG_NAME:
            name = _text(data[position:content_end])
        elif kind in _PAX:
            name = _pax_name(data[position : min(content_end, position + 2**20)]) or name
        else:
            if kind in _FILES and size:
                end_here = min(content_end, stop)
                yield Member(name=name or _name(header), start=position, end=end_here)
            name = ""
        if content_end > stop:
            yield Gap(decoders=("tar",), why="broken")
            return
        position = content_end + -size % _BLOCK


def _parts(
    label: str, data: Data, members: Iterator[Member | Gap], meter: Meter
) -> Iterator[Inner | Gap]:
    for member in members:
        meter.check()
        if isinstance(member, Gap):
            yield member
        elif member.end - member.start > meter.budget.piece_bytes:
            yield Gap(decoders=(f"{label}:{member.name}",), why="too large")
        else:
            content = cut(data, member.start, member.end, meter=meter)
            yield Inner(label=f"{label}:{member.name}", data=content)


def _size(header: bytes) -> int | None:
    """Return the size that a header tells; None when its sum is wrong."""
    told = _number(header[_SUM])
    if len(header) < _BLOCK or told is None:
        return None
    if sum(header) - sum(header[_SUM]) + 8 * ord(" ") != told:
        return None
    return _number(header[124:136])


def _number(field: bytes) -> int | None:
    if field[:1] and field[0] & _WIDE:
        return int.from_bytes(bytes([field[0] & ~_WIDE]) + field[1:], "big")
    try:
        return int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        return None


def _name(header: bytes) -> str:
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


def _pax_name(records: bytes) -> str:
    found = _PAX_PATH.search(records)
    return _text(found[1]) if found else ""


def _ar_members(data: Data) -> Iterator[Member | Gap]:
    position = len(AR_MAGIC)
    while position + _AR_HEADER <= len(data):
        header = data[position : position + _AR_HEADER]
        position += _AR_HEADER
        try:
            size = int(header[48:58])
        except ValueError:
            size = -1
        if size < 0:
            yield Gap(decoders=("ar",), why="broken")
            return
        name = header[:16].decode("latin-1").strip().rstrip("/")
        yield Member(name=name, start=position, end=min(position + size, len(data)))
        position += size + size % 2
