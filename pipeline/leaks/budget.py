"""Say what a scan may use, and stop it where that is spent."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

from pipeline.sandbox.protocol import GIB, MIB

# Why something was not read. The first four are of a budget, the others of what lies there.
Why = Literal[
    "too deep", "too large", "ratio", "time", "too many files",
    "broken", "encrypted", "no reader", "unreadable", "not a file", "path too long", "changed",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a scan may use before it says what it did not read.

    Example: `Budget(total_s=600)`.
    """

    # Formats inside each other: a wheel in a tar in a gzip is three.
    depth: int = 10
    # Largest single piece: a decompressed stream, a member of an archive.
    piece_bytes: int = 1 * GIB
    # What all pieces of one file come to.
    file_bytes: int = 4 * GIB
    # What is read and decoded in all.
    total_bytes: int = 256 * GIB
    # Times that a stream may be larger than its compressed form, once it is over `free_bytes`.
    ratio: int = 250
    free_bytes: int = 32 * MIB
    # Seconds for one file, and for all.
    file_s: float = 300.0
    total_s: float = 3600.0
    # Files, links and folders that are looked at.
    num_files: int = 5_000_000


class SpentError(Exception):
    """A file, or the whole scan, has used what it may; `Meter.is_spent` tells which."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why: Why = why


class Meter:
    """Owns what a scan has used of its Budget."""

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self.num_files = 0
        # Read and decoded, since the beginning.
        self.num_bytes = 0
        # Decoded from the file that was begun last.
        self.file_bytes = 0
        # Nothing may be read any more.
        self.is_spent = False
        self._clock = clock
        self._ends_s = clock() + budget.total_s
        self._file_ends_s = self._ends_s

    def count_entry(self) -> None:
        """Count a file, link or folder.

        Raises:
            SpentError: there were too many, or it took too long.
        """
        self.num_files += 1
        if self.num_files > self.budget.num_files:
            self._spend("too many files")
        self.check()

    def begin_file(self, num_bytes: int) -> None:
        """Count the content of a file that is about to be read.

        Raises:
            SpentError: the whole scan has used too much.
        """
        self.file_bytes = 0
        self._file_ends_s = self._clock() + self.budget.file_s
        self._count(num_bytes)
        self.check()

    def count_decoded(self, num_bytes: int) -> None:
        """Count bytes that a decoder made.

        Raises:
            SpentError: the file, or the whole scan, has used too much.
        """
        self.file_bytes += num_bytes
        if self.file_bytes > self.budget.file_bytes:
            raise SpentError("too large")
        self._count(num_bytes)
        self.check()

    def check(self) -> None:
        """Look at the clock.

        Raises:
            SpentError: the time of the file, or of the scan, is over.
        """
        now_s = self._clock()
        if now_s > self._ends_s:
            self._spend("time")
        if now_s > self._file_ends_s:
            raise SpentError("time")

    def find_excess(self, num_out: int, *, num_in: int) -> Why | None:
        """Say what is wrong with the size of a stream, given how much of its source was read."""
        if num_out > self.budget.piece_bytes:
            return "too large"
        if num_out > self.budget.free_bytes and num_out > self.budget.ratio * num_in:
            return "ratio"
        return None

    def _count(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        if self.num_bytes > self.budget.total_bytes:
            self._spend("too large")

    def _spend(self, why: Why) -> NoReturn:
        self.is_spent = True
        raise SpentError(why)
