"""Read data that may be mapped from a file without keeping its pages in memory."""

import mmap
from collections.abc import Iterator
from typing import Protocol

from pipeline.leaks.decode.piece import Data
from pipeline.sandbox.protocol import MIB

# Larger buffers are not kept by the allocator, and the pages of a new one cost as much as reading.
_STEP_BYTES = 1 * MIB


class Digest(Protocol):
    """What `hashlib` makes."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes in."""

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""


def windows(
    data: Data, *, size: int = _STEP_BYTES, overlap: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield data in windows with where each begins; an overlap is what a window has of the next."""
    if isinstance(data, bytes) and len(data) <= size:
        yield 0, data
        return
    for start in range(0, len(data), size):
        yield start, data[start : start + size + overlap]
        if isinstance(data, mmap.mmap):
            _forget(data)


def find(data: Data, needle: bytes, start: int = 0) -> int:
    """Return where a few bytes come next, or -1."""
    if isinstance(data, bytes):
        return data.find(needle, start)
    for begin in range(start, len(data), _STEP_BYTES):
        found = data.find(needle, begin, begin + _STEP_BYTES + len(needle) - 1)
        _forget(data)
        if found >= 0:
            return found
    return -1


def digest_of(data: Data, digest: Digest) -> bytes:
    """Return the digest of what was taken in so far, then the data."""
    for _, window in windows(data):
        digest.update(window)
    return digest.digest()


def _forget(data: mmap.mmap) -> None:
    """Drop the pages: they count as this process's memory, and can be read from the file again."""
    data.madvise(mmap.MADV_DONTNEED)
