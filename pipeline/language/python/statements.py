"""Take names out of a line of simple statements with LibCST, comments and layout kept."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst import matchers

from pipeline.language.python.separators import drop_items

_NOTHING = cst.SimpleWhitespace("")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCut:
    """What goes from one simple statement.

    Example: `StatementCut(aliases=frozenset({1}))` of `from m import a, gone` leaves `a`.
    """

    # The whole statement goes.
    is_dropped: bool = False
    # Places in the list of an import statement.
    aliases: frozenset[int] = frozenset()
    # Strings that go from the lists, sets and tuples of an `__all__` statement.
    strings: frozenset[str] = frozenset()


def cut_statements(text: str, cuts: Sequence[StatementCut]) -> str:
    """Return one line of simple statements after the cuts, one cut a statement.

    The text starts with the first statement and reaches to the end of the last one's line. The
    answer is empty when no statement is left.
    """
    module = cst.parse_module(text)
    line = cst.ensure_type(module.body[0], cst.SimpleStatementLine)
    kept = [
        _cut_names(node, cut)
        for node, cut in zip(line.body, cuts, strict=True)
        if not cut.is_dropped
    ]
    if not kept:
        return ""
    if cuts[-1].is_dropped:
        kept[-1] = kept[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return module.with_changes(body=[line.with_changes(body=kept)]).code


def _cut_names(node: cst.BaseSmallStatement, cut: StatementCut) -> cst.BaseSmallStatement:
    if isinstance(node, cst.ImportFrom) and cut.aliases:
        return _cut_from(node, cut.aliases)
    if isinstance(node, cst.Import) and cut.aliases:
        names, _, _ = drop_items(node.names, cut.aliases, before=_NOTHING, after=_NOTHING)
        return node.with_changes(names=names)
    changed = node.visit(_StringCutter(cut.strings)) if cut.strings else node
    assert isinstance(changed, cst.BaseSmallStatement)
    return changed


def _cut_from(node: cst.ImportFrom, places: Collection[int]) -> cst.ImportFrom:
    assert not isinstance(node.names, cst.ImportStar)
    names, before, after = drop_items(
        node.names,
        places,
        before=node.lpar.whitespace_after if node.lpar else _NOTHING,
        after=node.rpar.whitespace_before if node.rpar else _NOTHING,
    )
    if node.lpar is None or node.rpar is None:
        return node.with_changes(names=names)
    return node.with_changes(
        names=names,
        lpar=node.lpar.with_changes(whitespace_after=before),
        rpar=node.rpar.with_changes(whitespace_before=after),
    )


class _StringCutter(matchers.MatcherDecoratableTransformer):
    """Drops strings from the displays of a statement."""

    def __init__(self, strings: Collection[str]) -> None:
        super().__init__()
        self.strings = strings

    @matchers.leave(matchers.List())
    def cut_list(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        """Drop strings of a list."""
        elements, before, after = drop_items(
            updated_node.elements,
            self._places(original_node.elements),
            before=updated_node.lbracket.whitespace_after,
            after=updated_node.rbracket.whitespace_before,
        )
        return updated_node.with_changes(
            elements=elements,
            lbracket=updated_node.lbracket.with_changes(whitespace_after=before),
            rbracket=updated_node.rbracket.with_changes(whitespace_before=after),
        )

    @matchers.leave(matchers.Tuple())
    def cut_tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        """Drop strings of a tuple, with or without parentheses."""
        left, right = list(updated_node.lpar), list(updated_node.rpar)
        elements, before, after = drop_items(
            updated_node.elements,
            self._places(original_node.elements),
            before=left[-1].whitespace_after if left else _NOTHING,
            after=right[0].whitespace_before if right else _NOTHING,
        )
        if not left:
            return updated_node.with_changes(elements=elements) if elements else cst.Tuple([])
        left[-1] = left[-1].with_changes(whitespace_after=before)
        right[0] = right[0].with_changes(whitespace_before=after)
        return updated_node.with_changes(elements=elements, lpar=left, rpar=right)

    def _places(self, elements: Sequence[cst.BaseElement]) -> set[int]:
        values = (element.value for element in elements)
        return {
            place
            for place, value in enumerate(values)
            if isinstance(value, cst.SimpleString) and value.evaluated_value in self.strings
        }
