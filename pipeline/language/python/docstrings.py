"""Reduce docstrings to their prose."""

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"\s*(```|~~~)")
_DIRECTIVE = re.compile(
    r"\s*\.\. (code|code-block|doctest|testcode|testoutput|sourcecode|plot|ipython)::"
)
# The rest, such as `.. note::`, hold prose.
_PROSE_DIRECTIVE = re.compile(r"\s*\.\. [\w-]+::\s*")
_TITLE = re.compile(r"\s*(Examples?|Usages?|Doctests?)\s*:*\s*", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*([-=~^\"'`])\1{2,}\s*")

# Of one docstring: a page of them is no summary.
MAX_EXAMPLE_LINES = 24

# Stands for a piece of code that was taken out.
_CODE = "\0"


def prose_of(docstring: str) -> str:
    r"""Return a docstring without doctests, literal blocks, fenced blocks and their headings.

    >>> prose_of("Add one.\n\nExamples\n--------\n>>> inc(1)\n2\n")
    'Add one.'
    """
    prose = _without_leads(list(_without_code(docstring.expandtabs().splitlines())))
    lines = _without_titles(prose)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def examples_of(docstring: str) -> str:
    r"""Return the doctests of a docstring, as many as fit; their own indentation is left out.

    >>> examples_of("Add one.\n\n    >>> inc(1)\n    2\n\nNever fails.")
    '>>> inc(1)\n2'
    """
    lines = docstring.expandtabs().splitlines()
    blocks: list[str] = []
    at = room = 0
    while at < len(lines):
        end = at + 1
        if lines[at].lstrip().startswith(">>>"):
            end = _end_of_paragraph(lines, at)
            margin = _indent(lines[at])
            room += end - at
            if room > MAX_EXAMPLE_LINES:
                break
            blocks.append("\n".join(line[margin:].rstrip() for line in lines[at:end]))
        at = end
    return "\n\n".join(blocks)


def first_paragraph(docstring: str) -> str:
    """Return the prose up to the first blank line."""
    return prose_of(docstring).partition("\n\n")[0]


def _without_leads(lines: Sequence[str]) -> list[str]:
    """Drop the marks of code, and a line that only introduces what was there.

    A summary stays, as a sentence; so does the end of one that starts in a line above.
    """
    kept = []
    for at, line in enumerate(lines):
        is_alone = at == 0 or lines[at - 1].strip() in {"", _CODE}
        below = next((it for it in lines[at + 1 :] if it.strip()), "")
        is_lead = line.rstrip().endswith(":") and is_alone and below == _CODE
        ends_in_lead = line.rstrip().endswith(":") and not is_alone and below == _CODE
        if (is_lead and at == 0) or (ends_in_lead and not _is_sentence(lines[at - 1])):
            kept.append(f"{line.rstrip(': ')}.")
        elif line != _CODE and not is_lead and not ends_in_lead:
            kept.append(line)
    return kept


def _is_sentence(line: str) -> bool:
    """Tell whether a sentence ends with a line."""
    return line.rstrip().endswith((".", "!", "?"))


def _without_code(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines outside code, and a mark for each piece of code."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if _FENCE.match(line):
            at = _end_of_fence(lines, at)
            yield _CODE
        elif line.lstrip().startswith(">>>"):
            at = _end_of_paragraph(lines, at)
            yield _CODE
        elif _DIRECTIVE.match(line):
            at = _end_of_indented(lines, at)
            yield _CODE
        elif line.rstrip().endswith("::") and not _PROSE_DIRECTIVE.fullmatch(line):
            lead = line.rstrip().removesuffix("::").rstrip()
            at = _end_of_indented(lines, at)
            yield f"{lead}:" if lead else ""
            yield _CODE
        else:
            at += 1
            yield line


def _end_of_fence(lines: Sequence[str], start: int) -> int:
    closing = (at for at in range(start + 1, len(lines)) if _FENCE.match(lines[at]))
    return next(closing, len(lines) - 1) + 1


def _end_of_paragraph(lines: Sequence[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    margin = _indent(lines[start])
    for at in range(start + 1, len(lines)):
        if lines[at].strip() and _indent(lines[at]) <= margin:
            return at
    return len(lines)


def _without_titles(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without headings of examples that have nothing left below them."""
    at = 0
    while at < len(lines):
        line = lines[at]
        is_title = bool(_TITLE.fullmatch(line))
        has_rule = at + 1 < len(lines) and bool(_UNDERLINE.fullmatch(lines[at + 1]))
        end = at + 1 + has_rule
        if is_title and _is_empty_section(lines[end:], margin=_indent(line), has_rule=has_rule):
            at = end
            continue
        at += 1
        yield line


def _is_empty_section(lines: Sequence[str], *, margin: int, has_rule: bool) -> bool:
    """Tell whether a section ends before any text: at the end, a heading or a shallower line."""
    texts = [line for line in lines if line.strip()]
    if not texts:
        return True
    if has_rule:
        return len(texts) > 1 and bool(_UNDERLINE.fullmatch(texts[1]))
    return _indent(texts[0]) <= margin


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
