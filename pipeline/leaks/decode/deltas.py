"""Apply git's deltas: an object as copies from another one and what is new."""

from collections.abc import Iterator

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.growing import CHUNK_BYTES, Growing
from pipeline.leaks.decode.piece import Data

_COPY = 0x80
# What a copy of no length means.
_WHOLE_COPY = 0x10000


class BrokenDeltaError(ValueError):
    """Bytes that are no delta, or none of this base."""


def apply_delta(base: Data, delta: Data, *, meter: Meter) -> Data:
    """Return the object that a delta makes of its base.

    Raises:
        BrokenDeltaError: they do not fit, or the object is larger than the budget allows.
        SpentError: the file, or the whole scan, has used too much.
    """
    growing, num_in = Growing(meter), len(base) + len(delta)
    for source, start, end in _steps(delta):
        data = base if source == "base" else delta
        if end > len(data):
            raise BrokenDeltaError("a copy from behind the end")
        for position in range(start, end, CHUNK_BYTES):
            growing.write(data[position : min(position + CHUNK_BYTES, end)])
        if meter.find_excess(growing.num_bytes, num_in=num_in):
            raise BrokenDeltaError("larger than it may be")
    return growing.finish()


def added_text(delta: Data) -> bytes:
    """Return what a delta adds to its base, whatever that is.

    Raises:
        BrokenDeltaError: it is none.
    """
    return b"\n".join(delta[start:end] for source, start, end in _steps(delta) if source == "delta")


def _steps(delta: Data) -> Iterator[tuple[str, int, int]]:
    """Yield where each next range comes from, and its bounds there."""
    try:
        position = _after_number(delta, _after_number(delta, 0))
        while position < len(delta):
            command = delta[position]
            position += 1
            if command & _COPY:
                start, position = _number(delta, position, command & 15)
                size, position = _number(delta, position, command >> 4 & 7)
                yield "base", start, start + (size or _WHOLE_COPY)
            elif command:
                yield "delta", position, position + command
                position += command
            else:
                raise BrokenDeltaError("an unknown command")
    except IndexError as error:
        raise BrokenDeltaError("it ends too early") from error


def _after_number(delta: Data, position: int) -> int:
    """Return where the sizes of base and object end: seven bits a byte."""
    while delta[position] & 0x80:
        position += 1
    return position + 1


def _number(delta: Data, position: int, present: int) -> tuple[int, int]:
    """Read a number of which only those bytes are there that a mask tells."""
    value = 0
    for place in range(4):
        if present >> place & 1:
            value |= delta[position] << (8 * place)
            position += 1
    return value, position
