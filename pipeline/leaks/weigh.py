"""Take the keys of texts and names, each with the bits that finding it tells."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.leaks.rarity import shipped_rarity
from pipeline.leaks.words import (
    NUM_RUN,
    Keys,
    line_keys,
    read_words,
    run_keys,
    word_keys,
)

# What tells less is not looked for.
MIN_BITS = 1.0
# Words that stand together are not independent: each tells half of what it tells alone.
DEPENDENCE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The lines and runs of a text, by key."""

    lines: dict[int, float]
    runs: dict[int, float]


def weigh_text(text: bytes) -> Weighed:
    """Return the keys of a text with what each tells.

    A line tells what the table says of it, and no more than its words do: a line that no package
    holds may still be one that anybody would write.
    """
    words = read_words(text)
    if not len(words.hashes):
        return Weighed(lines={}, runs={})
    rarity = shipped_rarity()
    told = np.concatenate(([0.0], np.cumsum(rarity.bits(word_keys(words.hashes)) * DEPENDENCE)))
    lines, runs = line_keys(words), run_keys(words.hashes)
    of_lines = np.minimum(rarity.bits(lines), told[words.line_ends] - told[words.line_starts])
    of_runs = np.minimum(rarity.bits(runs), told[NUM_RUN:] - told[:-NUM_RUN])
    return Weighed(lines=_telling(lines, of_lines), runs=_telling(runs, of_runs))


def weigh_words(text: bytes) -> dict[int, float]:
    """Return the key of each word of a text with what it tells."""
    keys = word_keys(read_words(text).hashes)
    return _telling(keys, shipped_rarity().bits(keys))


def _telling(keys: Keys, bits: NDArray[np.float64]) -> dict[int, float]:
    tells = bits >= MIN_BITS
    return dict(zip(keys[tells].tolist(), bits[tells].round(2).tolist(), strict=True))


def name_key(name: str) -> int:
    """Return the key of a name, as a word of a text has it."""
    return int(word_keys(read_words(name.encode("utf-8", "replace")).hashes)[0])


def told_by(texts: Iterable[str]) -> dict[str, float]:
    """Return what each of some names or short texts tells, by its rarest word."""
    ordered = sorted(texts)
    encoded = [it.encode("utf-8", "replace").replace(b"\n", b" ") for it in ordered]
    words = read_words(b"\n".join(encoded))
    bits = shipped_rarity().bits(word_keys(words.hashes))
    begins = np.cumsum([0, *(len(it) + 1 for it in encoded)])
    told = np.zeros(len(ordered) + 1)
    np.maximum.at(told, np.searchsorted(begins, words.starts, side="right") - 1, bits)
    return dict(zip(ordered, told.round(2).tolist(), strict=False))


def text_key(kind: str, parts: Iterable[str]) -> int:
    """Return the key of some texts in order."""
    joined = "\0".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big") >> 1
