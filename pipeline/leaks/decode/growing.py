"""Collect what a decoder makes: in memory while small, then in a file that has no name."""

import mmap
import tempfile
from typing import IO

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.piece import Data
from pipeline.sandbox.protocol import MIB

# Larger content is mapped from a file.
_IN_MEMORY_BYTES = 16 * MIB
CHUNK_BYTES = 1 * MIB


class Growing:
    """Owns decoded bytes, counted as they come."""

    def __init__(self, meter: Meter) -> None:
        self.num_bytes = 0
        self._meter = meter
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    def write(self, chunk: bytes) -> None:
        """Add bytes.

        Raises:
            SpentError: the file, or the whole scan, has used too much.
        """
        self._meter.count_decoded(len(chunk))
        self.num_bytes += len(chunk)
        if self._file is not None:
            self._file.write(chunk)
            return
        self._memory += chunk
        if self.num_bytes > _IN_MEMORY_BYTES:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # its mapping outlives this object
            self._file.write(self._memory)
            self._memory = bytearray()

    def finish(self) -> Data:
        """Return all that was written."""
        if self._file is None:
            return bytes(self._memory)
        with self._file as file:
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def cut(data: Data, start: int, end: int, *, meter: Meter) -> Data:
    """Return a copy of a range, in memory if it is small.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    if start == 0 and end >= len(data):
        return data
    growing = Growing(meter)
    for position in range(start, min(end, len(data)), CHUNK_BYTES):
        growing.write(data[position : min(position + CHUNK_BYTES, end)])
    return growing.finish()
