"""Say how much it tells that a key was found: little for what many packages hold."""

import json
import lzma
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.leaks.words import Keys

TABLE = Path(__file__).with_name("rarity.bin")
_FORMAT = "regrow-rarity-1"
_EIGHTHS = 8
# Keys are kept by their highest bits.
_SHIFT = np.uint64(31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rarity:
    """In how many of some common packages keys were found."""

    num_packages: int
    # Sorted; the highest 32 bits of each key that several packages hold.
    hashes: NDArray[np.uint32]
    # Logarithm of the packages that hold each, in eighths of a bit.
    levels: NDArray[np.uint8]

    @property
    def max_bits(self) -> float:
        """The bits of a key that is in no table."""
        return math.log2(self.num_packages)

    def bits(self, keys: Keys) -> NDArray[np.float64]:
        """Return for each key the bits that finding it tells: log2 of packages over holders."""
        wanted = short_keys(keys)
        levels = np.zeros(len(keys), np.float64)
        if len(self.hashes):
            found = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
            is_known = self.hashes[found] == wanted
            levels[is_known] = self.levels[found[is_known]]
        return np.maximum(self.max_bits - levels / _EIGHTHS, 0.0)


@cache
def shipped_rarity() -> Rarity:
    """Return the table that ships with the package; see `build_rarity.py`."""
    return decode_rarity(TABLE.read_bytes())


def short_keys(keys: Keys) -> NDArray[np.uint32]:
    """Return the highest 32 bits of keys, which are what a table keeps."""
    return (keys >> _SHIFT).astype(np.uint32)


def encode_rarity(holders: Mapping[int, int], *, num_packages: int) -> bytes:
    """Return the file of a table, from the number of packages that hold each short key."""
    ordered = np.array(sorted(holders), dtype=np.uint32)
    numbers = np.array([holders[it] for it in ordered.tolist()], dtype=np.float64)
    levels = (np.log2(numbers) * _EIGHTHS).round().astype(np.uint8)
    gaps = np.diff(ordered, prepend=np.uint32(0))
    # Bytes of one weight lie together: the high ones are nearly all zero.
    planes = gaps.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes()
    header = {"format": _FORMAT, "num_packages": num_packages, "num_keys": len(ordered)}
    packed = lzma.compress(planes + levels.tobytes(), preset=9)
    return json.dumps(header).encode() + b"\n" + packed


def decode_rarity(data: bytes) -> Rarity:
    """Read the file of a table.

    Raises:
        ValueError: it is none.
    """
    line, _, packed = data.partition(b"\n")
    header = json.loads(line)
    if header.get("format") != _FORMAT:
        raise ValueError(f"format {header.get('format')!r}, expected {_FORMAT!r}")
    size = header["num_keys"]
    raw = np.frombuffer(lzma.decompress(packed), dtype=np.uint8)
    gaps = np.ascontiguousarray(raw[: 4 * size].reshape(4, size).T).view("<u4").ravel()
    return Rarity(
        num_packages=header["num_packages"],
        hashes=np.cumsum(gaps, dtype=np.uint32),
        levels=raw[4 * size :],
    )
