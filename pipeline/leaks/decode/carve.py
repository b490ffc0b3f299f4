"""Find compressed streams that lie in the midst of other bytes."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.git import PACK_MAGIC, find_pack, pack_parts
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
from pipeline.leaks.decode.zips import MAGIC as ZIP_MAGIC
from pipeline.leaks.decode.zips import holds_zip, zip_parts
from pipeline.sandbox.protocol import MIB

# What begins a stream, or what holds other files; zlib's header has four levels.
_MARKS = (
    *((bytes((0x78, level)), "zlib") for level in (0x01, 0x5E, 0x9C, 0xDA)),
    (GZIP_MAGIC, "gzip"), (XZ_MAGIC, "xz"), (ZSTD_MAGIC, "zstd"),
    (ZIP_MAGIC, "zip"), (PACK_MAGIC, "pack"),
)  # fmt: skip
_STREAMS = frozenset({"zlib", "gzip", "xz", "zstd"})


_BY_PAIR = {mark[:2]: (mark, label) for mark, label in _MARKS}
# 1 for a byte that a mark begins with.
_FIRSTS = bytes(byte in {mark[0] for mark, _ in _MARKS} for byte in range(256))
# By the first two bytes, the second times 256: 1 for those of a mark.
_PAIRS = np.zeros(2**16, dtype=np.bool_)
_PAIRS[[first + 256 * second for first, second in _BY_PAIR]] = True
# Bytes that are looked at in one go, while they are in the processor's cache.
_STEP_BYTES, _STRIDE = 2**16, 8
# More of them are not held, but looked for again.
_MAX_MARKS = 2**16
_WINDOW_BYTES = 1 * MIB
# What bytes that happen to look like a header do not come to.
_MIN_BYTES, _MIN_BROKEN_BYTES = 24, 256
# Most of the former break off in as many.
_PROBE_BYTES = 256
# More data would be copied for zstd, which does not tell where a stream ends.
_ZSTD_BYTES = 64 * MIB


def carved_parts(data: Data, meter: Meter, *, start: int = 0) -> Iterator[Inner | Gap]:
    """Yield what is packed somewhere inside of a file, streams from a place onwards.

    Bytes that merely look like a header are no gap.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    few = list(islice(_marks_in(data), _MAX_MARKS + 1))
    are_all = len(few) <= _MAX_MARKS
    labels = {label for _, label in few}
    if ("zip" in labels or not are_all) and holds_zip(data):
        yield from zip_parts(data, meter)
    pack = find_pack(data) if "pack" in labels or not are_all else -1
    if pack >= 0:
        yield from pack_parts(data, meter, start=pack)
        return
    end = start
    for begin, label in few if are_all else _marks_in(data):
        if begin < end or label not in _STREAMS:
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
        if not _inflates(data[start : start + _PROBE_BYTES]):
            return Stream(data=b"", end=start, why="broken")
        return inflate(data, start, wbits=ZLIB, meter=meter)
    if label == "gzip":
        return inflate(data, start, wbits=GZIP, meter=meter)
    if label == "xz":
        return decompress(xz_engine(), data, start, meter=meter)
    return unzstd(data[start : start + _ZSTD_BYTES], meter)


def _inflates(head: bytes) -> bool:
    """Tell at little cost whether the beginning of a stream does not break off."""
    try:
        zlib.decompressobj().decompress(head, _MIN_BYTES)
    except zlib.error:
        return False
    return True


def _marks_in(data: Data) -> Iterator[tuple[int, str]]:
    """Yield where something may begin, and what, window by window in order."""
    # A mark may stand across two windows.
    for start, window in windows(data, size=_WINDOW_BYTES, overlap=len(XZ_MAGIC) - 1):
        for at in _pairs_in(window):
            mark, label = _BY_PAIR[window[at : at + 2]]
            if window.startswith(mark, at):
                yield start + at, label


def _pairs_in(window: bytes) -> Iterator[int]:
    """Yield where two bytes stand that begin a mark."""
    for start in range(0, len(window), _STEP_BYTES):
        for at in _pairs_of(window[start : start + _STEP_BYTES + 1]):
            yield start + at


def _pairs_of(text: bytes) -> list[int]:
    """Return where two bytes begin a mark: one look at each, whatever the marks."""
    size = len(text) - 1
    padded = text[:size].translate(_FIRSTS) + bytes(-size % _STRIDE)
    found = np.frombuffer(padded, dtype=np.uint8)
    near = found.view(np.uint64).nonzero()[0]
    rows, columns = found.reshape(-1, _STRIDE)[near].nonzero()
    offsets = near[rows] * _STRIDE + columns
    pairs = np.ndarray((size,), dtype="<u2", buffer=text, strides=(1,))
    begun: list[int] = offsets[_PAIRS[pairs[offsets]]].tolist()
    return begun
