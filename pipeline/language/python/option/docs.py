"""Cut what a docstring says of one parameter."""

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

from pipeline.language.python.text import split_lines

_FIELD = r"\s*:(?:param|parameter|arg|argument|key|keyword|kwarg|type)\s+(?:[^:]*\s)?\*{0,2}%s:"
# numpydoc's `strict : bool`, Google's `strict (bool): …`, an item of a list.
_ENTRY = r"\s*(?:[-*+]\s+)?[`*\"']*%s[`*\"']*(?:=\S*)?\s*(?:\([^)]*\))?\s*(?::|--?|\u2013)(?:\s|$)"
_MENTION = r"[`*\"'|]%s[`*\"'|=]|\b%s\s?="
_KEYWORD = r"\b%s\s*="
_QUOTES = ('"""', "'''")
_RULE = re.compile(r"\s*([-=~^])\1{2,}\s*")
_TITLE = re.compile(r"\s*[A-Z][\w ]*:?\s*")


def cut_docs(literal: str, name: str) -> tuple[str, tuple[str, ...]]:
    r"""Return a docstring without the entries, paragraphs and examples of a parameter, and those.

    Args:
        literal: the docstring as it stands in the code, with its quotes.
        name: of the parameter.

    >>> cut_docs("'''Load.\n\n:param strict: Refuse more.\n'''", "strict")
    ("'''Load.\n'''", (':param strict: Refuse more.',))
    """
    lines = split_lines(literal)
    gone: set[int] = set()
    docs = []
    for block, is_told in _blocks(lines, re.escape(name)):
        if gone.isdisjoint(block):
            gone.update(block)
            text = "".join(_without_quotes(lines[number]) for number in block)
            docs += [dedent(text).strip()] if is_told else []
    gone |= _empty_titles(lines, gone)
    kept = [line for number, line in enumerate(lines) if number not in gone]
    last = len(lines) - 1
    if last in gone:
        margin = lines[last][: len(lines[last]) - len(lines[last].lstrip())]
        kept = [*_trimmed(kept), margin + literal[-3:]]
    elif gone and last and lines[last].strip() in _QUOTES and lines[last - 1].strip():
        kept = [*_trimmed(kept[:-1]), kept[-1]]
    return "".join(_spaced(kept)), tuple(docs)


def _blocks(lines: Sequence[str], name: str) -> Iterator[tuple[range, bool]]:
    """Yield runs of lines that are about the parameter, and whether they say something of it."""
    opening = re.compile(f"{_FIELD % name}|{_ENTRY % name}")
    for number in range(1, len(lines)):
        if opening.match(lines[number]):
            yield _indented(lines, number), True
        elif lines[number].lstrip().startswith(">>>"):
            block = _example(lines, number)
            if re.search(_KEYWORD % name, "".join(lines[block.start : block.stop])):
                yield block, False
    mention = re.compile(_MENTION % (name, name))
    for block in _paragraphs(lines):
        text = "".join(lines[block.start : block.stop])
        margins = {_margin(lines[number]) for number in block}
        if mention.search(text) and len(margins) == 1 and ">>>" not in text:
            yield block, True


def _indented(lines: Sequence[str], start: int) -> range:
    """Return an entry with the deeper lines below it."""
    end = start + 1
    for number in range(start + 1, len(lines)):
        text = _without_quotes(lines[number])
        if text.strip() and _margin(lines[number]) <= _margin(lines[start]):
            break
        if text.strip():
            end = number + 1
    return range(start, end)


def _example(lines: Sequence[str], start: int) -> range:
    """Return one statement of a doctest with what it prints."""
    for number in range(start + 1, len(lines)):
        text = _without_quotes(lines[number]).strip()
        if not text or text.startswith(">>>"):
            return range(start, number)
    return range(start, len(lines))


def _paragraphs(lines: Sequence[str]) -> Iterator[range]:
    """Yield runs of lines between blank ones, the summary left out."""
    start = None
    for number, line in enumerate([*lines, ""]):
        is_blank = not _without_quotes(line).strip()
        if is_blank and start is not None:
            if start:
                yield range(start, number)
            start = None
        elif not is_blank and start is None:
            start = number


def _empty_titles(lines: Sequence[str], gone: set[int]) -> set[int]:
    """Return headings, with their rules, that nothing is left below of what was there."""
    empty: set[int] = set()
    for number in range(1, len(lines)):
        is_underlined = number + 1 < len(lines) and bool(_RULE.fullmatch(lines[number + 1]))
        body = number + 1 + is_underlined
        if number in gone or body not in gone or not _TITLE.fullmatch(lines[number]):
            continue
        if not is_underlined and not lines[number].rstrip().endswith(":"):
            continue
        below = [it for it in range(body, len(lines)) if _without_quotes(lines[it]).strip()]
        rest = [it for it in below if it not in gone]
        is_next = bool(rest) and _is_heading(lines, rest[0], margin=_margin(lines[number]))
        if not rest or is_next:
            empty |= {number, body - 1}
    return empty


def _is_heading(lines: Sequence[str], number: int, *, margin: int) -> bool:
    is_underlined = number + 1 < len(lines) and bool(_RULE.fullmatch(lines[number + 1]))
    return is_underlined or _margin(lines[number]) < margin or lines[number].rstrip().endswith(":")


def _spaced(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines with one blank line at most where some were taken out."""
    before = ""
    for line in lines:
        if line.strip() or before.strip():
            yield line
        before = line


def _trimmed(lines: Sequence[str]) -> list[str]:
    kept = list(lines)
    while len(kept) > 1 and not kept[-1].strip():
        kept.pop()
    return kept


def _without_quotes(line: str) -> str:
    """Return a line without the quotes that end a docstring."""
    text = line.rstrip()
    return text[:-3] + "\n" if text.endswith(_QUOTES) else line


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
