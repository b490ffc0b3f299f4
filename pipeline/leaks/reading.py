"""Read the content of a file that anybody may have made: no link followed, no hole read."""

import errno
import mmap
import os
import stat
from collections.abc import Iterator

from pipeline.leaks.budget import Meter, Why
from pipeline.leaks.decode.growing import Growing
from pipeline.leaks.decode.piece import Data
from pipeline.sandbox.protocol import MIB

# Larger files are mapped; while that is so, nobody may cut them short.
_IN_MEMORY_BYTES = 8 * MIB
# Fewer bytes of holes are read as the zeros that they are.
_MIN_HOLES_BYTES = 16 * MIB
_CHUNK_BYTES = 1 * MIB
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_file(path: str, meter: Meter) -> tuple[Data, Why | None]:
    """Return the content of a regular file, and why it is not whole.

    Of a file with large holes only the rest is returned, a zero for each hole.

    Raises:
        SpentError: the whole scan has used too much.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        return b"", _reason(error)
    try:
        return _read(descriptor, meter)
    except OSError as error:
        return b"", _reason(error)
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> Why:
    return "path too long" if error.errno == errno.ENAMETOOLONG else "unreadable"


def _read(descriptor: int, meter: Meter) -> tuple[Data, Why | None]:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return b"", "not a file"
    size, is_holey = found.st_size, found.st_size - found.st_blocks * 512 > _MIN_HOLES_BYTES
    meter.begin_file(found.st_blocks * 512 if is_holey else size)
    if is_holey:
        return _without_holes(descriptor, size, meter)
    room = meter.budget.file_bytes
    if size > _IN_MEMORY_BYTES:
        mapped = mmap.mmap(descriptor, min(size, room), access=mmap.ACCESS_READ)
        return mapped, "too large" if size > room else None
    return _all_of(descriptor, size), None


def _all_of(descriptor: int, size: int) -> bytes:
    """Read a whole file, which has about that many bytes."""
    content = os.read(descriptor, size + 1)
    if len(content) == size:
        return content
    chunks = [content]
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        chunks.append(chunk)
        if sum(map(len, chunks)) > 2 * _IN_MEMORY_BYTES:
            break
    return b"".join(chunks)


def _without_holes(descriptor: int, size: int, meter: Meter) -> tuple[Data, Why | None]:
    growing = Growing(meter)
    for start, end in _extents(descriptor, size):
        growing.write(b"\0")
        for position in range(start, end, _CHUNK_BYTES):
            growing.write(os.pread(descriptor, min(_CHUNK_BYTES, end - position), position))
            if growing.num_bytes > meter.budget.piece_bytes:
                return growing.finish(), "too large"
    return growing.finish(), None


def _extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that are not holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole is left
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end
