"""Find compressed streams that lie in the midst of other bytes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.git import find_pack, pack_parts
from pipeline.leaks.decode.mapped import windows
from pipeline.leaks.decode.piece import Data, Gap, Inner
from pipeline.leaks.decode.streams import (
    GZIP,
    GZIP_MAGIC,
    XZ_MAGIC,
    ZLIB,
    ZSTD_MAGIC,
    Stream,
    decompress,
    inflate,
    unzstd,
    xz_engine,
)
from pipeline.leaks.decode.zips import holds_zip, zip_parts
from pipeline.sandbox.protocol import MIB

# zlib's header: its first byte, and the second ones of the four levels.
_FIRST, _SECONDS = 0x78, (0x01, 0x5E, 0x9C, 0xDA)
_WINDOW_BYTES = 4 * MIB
# What bytes that happen to look like a header do not come to.
_MIN_BYTES, _MIN_BROKEN_BYTES = 24, 256
# More data would be copied for zstd, which does not tell where a stream ends.
_ZSTD_BYTES = 64 * MIB


def carved_parts(data: Data, meter: Meter, *, start: int = 0) -> Iterator[Inner | Gap]:
    """Yield what is packed somewhere inside of a file, streams from a place onwards.

    Bytes that merely look like a header are no gap.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    if holds_zip(data):
        yield from zip_parts(data, meter)
    pack = find_pack(data)
    if pack >= 0:
        yield from pack_parts(data, meter, start=pack)
        return
    end = start
    for begin, label in _candidates(data):
        if begin < end:
            continue
        meter.check()
        stream = _open(label, data, begin, meter)
        if len(stream.data) >= (_MIN_BROKEN_BYTES if stream.why else _MIN_BYTES):
            # What broke off is matched, but not carved again: chance would be carved from chance.
            found = Inner(label=f"{label}@{begin}", data=stream.data)
            yield replace(found, form="binary") if stream.why else found
            # zstd does not tell where its last frame ends.
            end = begin + 1 if label == "zstd" else stream.end
        if stream.why in {"ratio", "too large"}:
            yield Gap(decoders=(f"{label}@{begin}",), why=stream.why)


def _open(label: str, data: Data, start: int, meter: Meter) -> Stream:
    if label == "zlib":
        return inflate(data, start, wbits=ZLIB, meter=meter)
    if label == "gzip":
        return inflate(data, start, wbits=GZIP, meter=meter)
    if label == "xz":
        return decompress(xz_engine(), data, start, meter=meter)
    return unzstd(data[start : start + _ZSTD_BYTES], meter)


def _candidates(data: Data) -> Iterator[tuple[int, str]]:
    """Yield where a stream may begin, and of what, window by window in order."""
    # A header may stand across two windows.
    for start, window in windows(data, size=_WINDOW_BYTES, overlap=len(XZ_MAGIC) - 1):
        found = [(start + at, "zlib") for at in _zlib_headers(window)]
        for magic, label in ((GZIP_MAGIC, "gzip"), (XZ_MAGIC, "xz"), (ZSTD_MAGIC, "zstd")):
            found += [(start + at, label) for at in _all_of(window, magic)]
        yield from sorted(found)


def _zlib_headers(window: bytes) -> list[int]:
    letters = np.frombuffer(window, dtype=np.uint8)
    firsts = np.flatnonzero(letters[:-1] == _FIRST)
    found: list[int] = firsts[np.isin(letters[firsts + 1], _SECONDS)].tolist()
    return found


def _all_of(window: bytes, magic: bytes) -> Iterator[int]:
    at = window.find(magic)
    while at >= 0:
        yield at
        at = window.find(magic, at + 1)
