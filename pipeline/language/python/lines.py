"""Replace runs of lines and close the gaps that removed ones leave."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.language.python.symbols import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """New text for a run of lines.

    Example: `Edit(span=Span(first_line=3, last_line=9), text="", opens_block=False)`.
    """

    span: Span
    # With its line ending; empty removes the lines.
    text: str
    # No statement of the same block stands before.
    opens_block: bool


def apply_edits(lines: Sequence[str], edits: Sequence[Edit]) -> str:
    """Return the text after edits that do not overlap.

    Of the blank lines before and after removed ones the longer run stays, so that what follows
    keeps its distance.
    """
    joined = _joined([edit for edit in edits if not edit.text], lines=lines)
    removals = [_with_heading(it, lines=lines) for it in joined]
    kept = {edit.span.first_line: edit.text for edit in edits if edit.text}
    gone = {line for edit in edits for line in _numbers(edit.span)}
    for removal in removals:
        gone.update(_numbers(removal.span))
        gone.update(_spare_blanks(removal, lines=lines))
    texts = (
        kept.get(number, "" if number in gone else line)
        for number, line in enumerate(lines, start=1)
    )
    return "".join(texts)


def with_comments(span: Span, *, lines: Sequence[str], after: int) -> Span:
    """Widen a definition by the comments that belong to it.

    These are the lines directly above at its own indentation, unless they open the file as a
    licence or an encoding does, and those below that are indented deeper. Lines up to `after` are
    somebody else's.
    """
    margin = _margin(lines[span.first_line - 1])
    first = span.first_line
    while (
        first - 1 > after and _is_comment(lines[first - 2]) and _margin(lines[first - 2]) == margin
    ):
        first -= 1
    if first == 1:
        first = span.first_line
    last = span.last_line
    for number in range(span.last_line + 1, len(lines) + 1):
        line = lines[number - 1]
        if _is_comment(line) and _margin(line).startswith(margin) and _margin(line) != margin:
            last = number
        elif line.strip():
            break
    return Span(first_line=first, last_line=last)


def is_alone(span: Span, *, lines: Sequence[str]) -> bool:
    """Tell whether no code follows directly below."""
    return span.last_line >= len(lines) or not lines[span.last_line].strip()


def _joined(removals: Sequence[Edit], *, lines: Sequence[str]) -> list[Edit]:
    """Join removals with nothing but blank lines between them."""
    joined: list[Edit] = []
    for edit in sorted(removals, key=lambda it: it.span.first_line):
        before = joined[-1] if joined else None
        if before and not "".join(lines[before.span.last_line : edit.span.first_line - 1]).strip():
            span = Span(first_line=before.span.first_line, last_line=edit.span.last_line)
            joined[-1] = Edit(span=span, text="", opens_block=before.opens_block)
        else:
            joined.append(edit)
    return joined


def _with_heading(removal: Edit, *, lines: Sequence[str]) -> Edit:
    """Widen a removal by the comment that stands over all of it, as the title of a section does.

    Blank lines are around such a comment, and what follows the removed lines is the next of its
    kind, or leaves the block.
    """
    first, last = removal.span.first_line, removal.span.last_line
    margin = _margin(lines[first - 1])
    end = first - 1 - _num_blank(lines[: first - 1][::-1])
    start = end - _num_comments(lines[:end][::-1], margin=margin)
    is_title = 0 < start < end < first - 1 and not lines[start - 1].strip()
    if not is_title or not _is_section_over(lines[last:], margin=margin):
        return removal
    return replace(removal, span=Span(first_line=start + 1, last_line=last))


def _is_section_over(below: Sequence[str], *, margin: str) -> bool:
    """Tell whether lines start, blank ones aside, with a title or further out than a margin."""
    rest = below[_num_blank(below) :]
    if not rest or len(_margin(rest[0])) < len(margin):
        return True
    num_comments = _num_comments(rest, margin=margin)
    return bool(num_comments) and bool(_num_blank(rest[num_comments:]))


def _num_comments(lines: Sequence[str], *, margin: str) -> int:
    """Count the comments at a margin that lines start with."""
    others = (n for n, line in enumerate(lines) if not _is_comment(line) or _margin(line) != margin)
    return next(others, len(lines))


def _spare_blanks(removal: Edit, *, lines: Sequence[str]) -> range:
    first, last = removal.span.first_line, removal.span.last_line
    above = _num_blank(lines[: first - 1][::-1])
    below = _num_blank(lines[last:])
    at_end = last + below == len(lines)
    if removal.opens_block and not at_end:
        return range(last + 1, last + 1 + below)
    if at_end or below >= above:
        return range(first - above, first)
    return range(last + 1, last + 1 + below)


def _num_blank(lines: Sequence[str]) -> int:
    return next((n for n, line in enumerate(lines) if line.strip()), len(lines))


def _numbers(span: Span) -> range:
    return range(span.first_line, span.last_line + 1)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
