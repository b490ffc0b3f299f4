"""Drop items of a comma-separated LibCST sequence while each comment stays with its item."""

from collections.abc import Collection, Sequence
from typing import TypeVar

import libcst as cst

Item = TypeVar("Item", cst.ImportAlias, cst.BaseElement | cst.BaseDictElement)
Whitespace = cst.BaseParenthesizableWhitespace


def drop_items(
    items: Sequence[Item], places: Collection[int], *, before: Whitespace, after: Whitespace
) -> tuple[list[Item], Whitespace, Whitespace]:
    """Drop the items at some places.

    `before` and `after` are the whitespace inside the brackets; the answer is what is left of the
    items, with the new whitespace of the brackets.
    """
    kept = list(items)
    commas: list[cst.Comma | cst.MaybeSentinel] = [item.comma for item in items]
    gaps = [before, *map(_gap, commas[:-1]), _last_gap(commas, after)]
    for place in sorted(places, reverse=True):
        is_last = place == len(kept) - 1
        gaps[place : place + 2] = [_merged(gaps[place], gaps[place + 1], is_last=is_last)]
        del kept[place]
    if not kept:
        return [], cst.SimpleWhitespace(""), cst.SimpleWhitespace("")
    for place, gap in enumerate(gaps[1:-1]):
        kept[place] = kept[place].with_changes(comma=cst.Comma(whitespace_after=gap))
    comma = cst.Comma() if _is_comma(commas) else cst.MaybeSentinel.DEFAULT
    kept[-1] = kept[-1].with_changes(comma=comma)
    return kept, gaps[0], gaps[-1]


def _is_comma(commas: Sequence[cst.Comma | cst.MaybeSentinel]) -> bool:
    return bool(commas) and isinstance(commas[-1], cst.Comma)


def _gap(comma: cst.Comma | cst.MaybeSentinel) -> Whitespace:
    return comma.whitespace_after if isinstance(comma, cst.Comma) else cst.SimpleWhitespace("")


def _last_gap(commas: Sequence[cst.Comma | cst.MaybeSentinel], after: Whitespace) -> Whitespace:
    # The parser files what follows a trailing comma under the comma or under the bracket.
    gap = _gap(commas[-1]) if commas else after
    return after if gap.empty else gap


def _merged(left: Whitespace, right: Whitespace, *, is_last: bool) -> Whitespace:
    """Join the whitespace on both sides of a dropped item.

    A comment behind the previous item stays, as do comments on lines of their own; the one behind
    the dropped item goes with it if the item has the line to itself.
    """
    match left, right:
        case cst.ParenthesizedWhitespace(), cst.ParenthesizedWhitespace():
            return left.with_changes(
                empty_lines=[*left.empty_lines, *right.empty_lines],
                indent=right.indent,
                last_line=right.last_line,
            )
        case _, cst.ParenthesizedWhitespace():
            return right
        case cst.ParenthesizedWhitespace(), _ if left.first_line.comment is not None:
            return left
    return right if is_last else left
