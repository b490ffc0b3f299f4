"""Recognise the licences that a text consists of, by their words alone."""

import functools
import hashlib
import re

from pipeline.proposal.licence_texts import AROUND, LONG, SHORT

# Lines that say whose it is, and no condition.
COPYRIGHT = re.compile(
    r"^\W*(portions )?(copyright\s*(\(c\)|©|[,:]|\d{4}|by\b)|\(c\)\s*\d{4}|©"
    r"|all rights reserved).*$",
    re.MULTILINE,
)
BULLET = re.compile(r"(?:^|(?<=\s))(\(?\d{1,2}[.)]|\(?[a-d][.)]|[*•-])(?=\s)")
# Words that conditions are made of: neither a name nor a title has them.
CONDITIONS = frozenset({
    *("not", "no", "shall", "must", "only", "except", "unless", "without", "restricted"),
    *("prohibited", "commercial", "noncommercial", "private", "personal", "gpl", "gnu"),
})
# A few words in place of `…`.
GAP = rf"(?: (?!(?:{'|'.join(sorted(CONDITIONS))})\b)\w+){{0,20}}?"
# What titles and names leave over; a longer rest may be a condition.
MAX_REST = 40


def recognise(text: str) -> frozenset[str]:
    """Return the SPDX identifiers of the licences in a text; none when there is more in it."""
    rest = f" {_words(text)} "
    found = set()
    for name, pattern in _patterns():
        if pattern.search(rest):
            found.add(name)
            rest = pattern.sub(" ", rest)
    for name, (first, last, digest) in LONG.items():
        start, end = rest.find(first), rest.find(last) + len(last)
        if hashlib.sha256(rest[max(start, 0) : end].encode()).hexdigest() == digest:
            found.add(name)
            rest = rest[:start] + rest[end:]
    for pattern in map(_pattern, AROUND):
        rest = pattern.sub(" ", rest)
    return frozenset(found if _is_empty(rest) else ())


def is_pointer(text: str) -> bool:
    """Tell whether a text is too short for a licence: it says where the licences are."""
    return len(_words(text).split()) <= MAX_REST


def _is_empty(rest: str) -> bool:
    words = rest.split()
    return len(words) <= MAX_REST and not CONDITIONS & set(words)


@functools.cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _pattern(text)) for name, texts in SHORT.items() for text in texts)


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(GAP.join(f" {_words(part)}".rstrip() for part in text.split("…")))


def _words(text: str) -> str:
    """Return the words of a text, without case, marks, bullets and lines of copyright."""
    plain = BULLET.sub(" ", COPYRIGHT.sub(_unless_condition, text.lower()))
    return " ".join(re.findall(r"\w+", re.sub(r"(?<=\w)-(?=\w)", "", plain)))


def _unless_condition(line: re.Match[str]) -> str:
    return line.group() if CONDITIONS & set(re.findall(r"\w+", line.group())) else ""
