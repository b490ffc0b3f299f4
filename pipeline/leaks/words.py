"""Turn bytes into words, and words into keys: of a word, a line, a run of eight.

A key is a hash of 63 bits. White space, punctuation and the number that a listing puts before a
line have no part in it, so a copy keeps its keys however it is wrapped, quoted or numbered.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Places = NDArray[np.int64]

KEY_BITS = 63
# Words in a run; what the literature calls token 8-grams.
NUM_RUN = 8
# A shorter line says nothing: `else:`, `return value`.
MIN_LINE_WORDS, MIN_LINE_LETTERS = 2, 10

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
_FIRST_BEYOND_ASCII = 0x80
_FEED, _ZERO, _NINE = np.frombuffer(b"\n09", dtype=np.uint8)
# 1 for a byte of a word.
_IS_WORD = bytes(byte in _LETTERS or byte >= _FIRST_BEYOND_ASCII for byte in range(256))
# A word is hashed by its first and last eight bytes and its length.
_NUM_LOADED = 8
_MYPY_LENGTH = 20
# The lowest bytes of eight, by their number.
_MASKS = np.array([(1 << 8 * num) - 1 for num in range(_NUM_LOADED + 1)], dtype=np.uint64)

_FIRST, _LAST, _LENGTH, _MIX = (
    np.uint64(it)
    for it in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
)
_SHIFT_1, _SHIFT_2 = np.uint64(29), np.uint64(32)
# Base of the polynomials over the words of a line or run; odd, so that it has an inverse.
_BASE = 0x5851F42D4C957F2D
_OF_WORD, _OF_LINE, _OF_RUN = (
    np.uint64(it) for it in (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3)
)
_MODULUS = 2**64
# Small tables of powers are all of one size, so that they are made once.
_MIN_TABLE_BITS = 16
_POWER_1, _POWER_2, _POWER_4 = (np.uint64(pow(_BASE, it, _MODULUS)) for it in (1, 2, 4))
_HALF = np.uint64(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a text, in order."""

    # Hash of each word.
    hashes: Keys
    # Offsets of the first byte of each word, and of the one after its last.
    starts: Places
    ends: Places
    # For each line that says something: numbers of its first word and of the one after its last.
    line_starts: Places
    line_ends: Places


def read_words(text: bytes, found: tuple[Places, Places] | None = None) -> Words:
    """Find the words of a text, and the lines that they stand in.

    Args:
        text: any bytes.
        found: what `find_words` returned for it, when that is known.

    >>> words = read_words(b"12: grams = amount * _factor(source)")
    >>> len(words.hashes), len(words.line_starts)
    (4, 1)
    """
    starts, ends = find_words(text) if found is None else found
    # Methods of arrays are called throughout: numpy's functions cost more than small texts do.
    feeds = (np.frombuffer(text, dtype=np.uint8) == _FEED).nonzero()[0]
    # Numbers of the first word of each line, and of the one after its last.
    bounds = np.zeros(len(feeds) + 2, np.int64)
    bounds[1:-1] = starts.searchsorted(feeds)
    bounds[-1] = len(starts)
    starts, ends, bounds = _without_numbers(text, starts, ends, bounds)
    letters = np.zeros(len(starts) + 1, np.int64)
    (ends - starts).cumsum(out=letters[1:])
    firsts, lasts = bounds[:-1], bounds[1:]
    is_long = letters[lasts] - letters[firsts] >= MIN_LINE_LETTERS
    is_long &= lasts - firsts >= MIN_LINE_WORDS
    return Words(
        hashes=hash_words(text, starts, ends),
        starts=starts,
        ends=ends,
        line_starts=firsts[is_long],
        line_ends=lasts[is_long],
    )


def find_words(text: bytes) -> tuple[Places, Places]:
    """Return the offsets of the first byte of each word, and of the one after its last."""
    is_word = np.frombuffer(b"".join((b"\0", text.translate(_IS_WORD), b"\0")), dtype=np.bool_)
    changes = (is_word[1:] != is_word[:-1]).nonzero()[0]
    # Whole arrays are faster to look up in than every second entry of one.
    return changes[::2].copy(), changes[1::2].copy()


def _without_numbers(
    text: bytes, starts: Places, ends: Places, bounds: Places
) -> tuple[Places, Places, Places]:
    """Leave out the words that begin a line with a digit, as `cat -n` writes them."""
    leading = bounds[:-1][bounds[:-1] < bounds[1:]]
    initials = np.frombuffer(text, dtype=np.uint8)[starts[leading]]
    # What is below `0` wraps around.
    numbers = leading[initials - _ZERO <= _NINE - _ZERO]
    if not len(numbers):
        return starts, ends, bounds
    is_gone = np.zeros(len(starts) + 1, dtype=np.bool_)
    is_gone[numbers] = True
    num_gone: Places = is_gone.cumsum() - is_gone
    is_kept = ~is_gone[:-1]
    return starts[is_kept], ends[is_kept], bounds - num_gone[bounds]


def hash_words(text: bytes, starts: Places, ends: Places) -> Keys:
    """Return the hash of each stretch of a text."""
    padded = text + bytes(_NUM_LOADED)
    # Eight bytes from each offset on.
    loads: Keys = np.ndarray((len(text) + 1,), dtype="<u8", buffer=padded, strides=(1,))
    lengths = ends - starts
    mixed = loads[starts]
    mixed &= _MASKS[np.minimum(lengths, _NUM_LOADED)]
    mixed *= _FIRST
    mixed += lengths.view(np.uint64) * _LENGTH
    longer = (lengths > _NUM_LOADED).nonzero()[0]
    mixed[longer] += loads[ends[longer] - _NUM_LOADED] * _LAST
    mixed ^= mixed >> _SHIFT_1
    mixed *= _MIX
    mixed ^= mixed >> _SHIFT_2
    return mixed


def word_keys(hashes: Keys) -> Keys:
    """Return the key of each word alone."""
    keys = hashes * _OF_WORD
    keys >>= _HALF
    return keys


def glued_word_keys(text: bytes, found: tuple[Places, Places]) -> Keys:
    """Return the key of each word without its first byte, where that is its length.

    Binaries write the length of a word before it, and a length can look like a letter: as it is,
    or as mypy writes it, twice as much and 20.
    """
    starts, ends = found
    lengths = ends - starts - 1
    initials = np.frombuffer(text, dtype=np.uint8)[starts]
    is_glued = (initials == lengths) | (initials == 2 * lengths + _MYPY_LENGTH)
    return word_keys(hash_words(text, starts[is_glued] + 1, ends[is_glued]))


def line_keys(words: Words) -> Keys:
    """Return the key of each line that says something."""
    powers, inverses = _powers(len(words.hashes))
    sums = np.zeros(len(powers), np.uint64)
    (words.hashes * powers[:-1]).cumsum(out=sums[1:])
    lines = (sums[words.line_ends] - sums[words.line_starts]) * inverses[words.line_starts]
    return (lines * _OF_LINE) >> _HALF


def run_keys(hashes: Keys) -> Keys:
    """Return the key of each run of eight words, by the number of its first."""
    if len(hashes) < NUM_RUN:
        return np.empty(0, np.uint64)
    pairs = hashes[1:] * _POWER_1
    pairs += hashes[:-1]
    fours = pairs[2:] * _POWER_2
    fours += pairs[:-2]
    runs = fours[4:] * _POWER_4
    runs += fours[:-4]
    runs *= _OF_RUN
    runs >>= _HALF
    return runs


def _powers(number: int) -> tuple[Keys, Keys]:
    """Return the powers of the base from 0 up to a number, and as many of its inverse or more."""
    powers, inverses = _tables(1 << max(number.bit_length(), _MIN_TABLE_BITS))
    return powers[: number + 1], inverses


@lru_cache(maxsize=4)
def _tables(size: int) -> tuple[Keys, Keys]:
    return _table(_BASE, size), _table(pow(_BASE, -1, _MODULUS), size)


def _table(base: int, size: int) -> Keys:
    factors = np.full(size, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)
