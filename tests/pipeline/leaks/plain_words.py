"""The plain twin of `pipeline.leaks.words`: one word after the other, in Python's own integers."""

import re

from pipeline.leaks.words import MIN_LINE_LETTERS, MIN_LINE_WORDS, NUM_RUN

WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
MASK = 2**64 - 1
BASE = 0x5851F42D4C957F2D


def plain_hash(word: bytes) -> int:
    first = int.from_bytes(word[:8], "little")
    last = int.from_bytes(word[-8:], "little") if len(word) > 8 else 0
    mixed = first * 0x9E3779B97F4A7C15 + last * 0xC2B2AE3D27D4EB4F + len(word) * 0x165667B19E3779F9
    mixed &= MASK
    mixed = (mixed ^ (mixed >> 29)) * 0xD6E8FEB86659FD93 & MASK
    return mixed ^ (mixed >> 32)


def plain_lines(text: bytes) -> list[list[bytes]]:
    """Return the words of each line, without a number that it begins with."""
    lines = [WORD.findall(line) for line in text.split(b"\n")]
    return [words[1:] if words and words[0][:1].isdigit() else words for words in lines]


def plain_word_keys(text: bytes) -> list[int]:
    hashes = (plain_hash(word) for words in plain_lines(text) for word in words)
    return [_key(it, 0xA0761D6478BD642F) for it in hashes]


def plain_line_keys(text: bytes) -> list[int]:
    return [
        _key(_polynomial(words), 0xE7037ED1A0B428DB)
        for words in plain_lines(text)
        if len(words) >= MIN_LINE_WORDS and len(b"".join(words)) >= MIN_LINE_LETTERS
    ]


def plain_run_keys(text: bytes) -> list[int]:
    words = [word for line in plain_lines(text) for word in line]
    return [
        _key(_polynomial(words[at : at + NUM_RUN]), 0x8EBC6AF09C88C6E3)
        for at in range(len(words) - NUM_RUN + 1)
    ]


def _polynomial(words: list[bytes]) -> int:
    return sum(plain_hash(word) * pow(BASE, at, 2**64) for at, word in enumerate(words)) & MASK


def _key(value: int, kind: int) -> int:
    return (value * kind & MASK) >> 1
