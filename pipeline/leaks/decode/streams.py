"""Decompress streams bit by bit, within the budget."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pipeline.leaks.budget import Meter, Why
from pipeline.leaks.decode.growing import CHUNK_BYTES, Growing
from pipeline.leaks.decode.piece import Data, Gap, Inner
from pipeline.sandbox.protocol import MIB

RAW_DEFLATE, ZLIB, GZIP = -15, 15, 31
GZIP_MAGIC, BZIP2_MAGIC, XZ_MAGIC = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\x00"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# What a decompressor may hold; xz's best preset needs 65 MiB, and zstd itself refuses over 128.
MEMORY_BYTES = 256 * MIB
# Read at once: most streams of an archive are short.
_SOURCE_BYTES = 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What came out of a stream.

    Example: `Stream(data=b"def f(): …", end=1042, why=None)`.
    """

    data: Data
    # Where its source ends.
    end: int
    # Why it is not whole.
    why: Why | None


class Inflate:
    """zlib's decompressor in the manner of `bz2` and `lzma`."""

    def __init__(self, wbits: int) -> None:
        self._engine = zlib.decompressobj(wbits)

    @property
    def eof(self) -> bool:
        """Tell whether the stream is over."""
        return self._engine.eof

    @property
    def needs_input(self) -> bool:
        """Tell whether all that was given is used."""
        return not self._engine.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """Return what was given beyond the stream."""
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most that many bytes; empty data asks for the rest of the last."""
        return self._engine.decompress(data or self._engine.unconsumed_tail, max(max_length, 0))


Engine = Inflate | bz2.BZ2Decompressor | lzma.LZMADecompressor


def inflate(data: Data, start: int, *, wbits: int, meter: Meter) -> Stream:
    """Decompress one stream of deflate, with or without a header.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    return _run(lambda: Inflate(wbits), data, start, meter=meter)


def gzip_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a gzip file, all members joined."""
    return _parts("gzip", data, lambda: Inflate(GZIP), magic=GZIP_MAGIC, meter=meter)


def zlib_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a zlib stream."""
    return _parts("zlib", data, lambda: Inflate(ZLIB), magic=b"", meter=meter)


def bzip2_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a bzip2 file, all streams joined."""
    return _parts("bzip2", data, bz2.BZ2Decompressor, magic=BZIP2_MAGIC, meter=meter)


def xz_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of an xz file, all streams joined."""
    return _parts("xz", data, xz_engine, magic=XZ_MAGIC, meter=meter)


def lzma_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a file of xz's predecessor."""
    return _parts("lzma", data, lzma_engine, magic=b"", meter=meter)


def zstd_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the content of a zstd file, all frames joined."""
    yield from part_of("zstd", unzstd(data, meter))


def xz_engine() -> Engine:
    """Return a decompressor of xz with bounded memory."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY_BYTES)


def lzma_engine() -> Engine:
    """Return a decompressor of lzma with bounded memory."""
    return lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MEMORY_BYTES)


def unzstd(data: Data, meter: Meter) -> Stream:
    """Decompress frames of zstd.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    growing = Growing(meter)
    try:
        why = _drain_zstd(data, into=growing, meter=meter)
    except (OSError, ValueError):
        why = "broken"
    return Stream(data=growing.finish(), end=len(data), why=why)


def _drain_zstd(data: Data, *, into: Growing, meter: Meter) -> Why | None:
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            into.write(chunk)
            # How much of the source was read is not told.
            if why := meter.find_excess(into.num_bytes, num_in=len(data)):
                return why
    return None


def decompress(engine: Engine, data: Data, start: int, *, meter: Meter) -> Stream:
    """Decompress one stream.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    growing = Growing(meter)
    end, why = _pump(engine, data, start, into=growing, meter=meter)
    return Stream(data=growing.finish(), end=end, why=why)


def part_of(label: str, stream: Stream) -> Iterator[Inner | Gap]:
    """Yield what came out of a stream, and that it is not all if so."""
    if len(stream.data):
        yield Inner(label=label, data=stream.data)
    if stream.why is not None:
        yield Gap(decoders=(label,), why=stream.why)


def _parts(
    label: str, data: Data, engine: Callable[[], Engine], *, magic: bytes, meter: Meter
) -> Iterator[Inner | Gap]:
    yield from part_of(label, _run(engine, data, 0, magic=magic, meter=meter))


def _run(
    engine: Callable[[], Engine], data: Data, start: int, *, magic: bytes = b"", meter: Meter
) -> Stream:
    """Decompress one stream, and those that follow it with the same magic."""
    growing = Growing(meter)
    end, why = _pump(engine(), data, start, into=growing, meter=meter)
    while why is None and magic and data[end : end + len(magic)] == magic:
        end, why = _pump(engine(), data, end, into=growing, meter=meter)
    return Stream(data=growing.finish(), end=end, why=why)


def _pump(
    engine: Engine, data: Data, start: int, *, into: Growing, meter: Meter
) -> tuple[int, Why | None]:
    """Decompress one stream; return where it ends, and why it is not whole."""
    position = start
    try:
        while not engine.eof:
            chunk = data[position : position + _SOURCE_BYTES] if engine.needs_input else b""
            if engine.needs_input and not chunk:
                return position, "broken"
            position += len(chunk)
            into.write(engine.decompress(chunk, CHUNK_BYTES))
            if why := meter.find_excess(into.num_bytes, num_in=position - start):
                return position, why
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        return position, "too large" if "limit" in str(error) else "broken"
    return position - len(engine.unused_data), None
