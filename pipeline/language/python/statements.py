"""Take names out of a line of simple statements with LibCST, comments and layout kept."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import libcst as cst

from pipeline.language.python.displays import cut_elements, cut_strings
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
    # Names, dotted as written, whose elements go from its innermost lists, sets and dictionaries.
    names: frozenset[str] = frozenset()


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


def cut_decorators(text: str, names: Collection[str]) -> str:
    """Return the lines of decorators without the elements that mention names."""
    margin = text[: len(text) - len(text.lstrip())]
    before, after = ("if 1:\n" if margin else ""), f"{margin}def _(): ..."
    changed = cut_elements(cst.parse_module(f"{before}{text}{after}"), names)
    assert isinstance(changed, cst.Module)
    return changed.code.removeprefix(before).removesuffix(after)


def _cut_names(node: cst.BaseSmallStatement, cut: StatementCut) -> cst.BaseSmallStatement:
    if isinstance(node, cst.ImportFrom) and cut.aliases:
        return _cut_from(node, cut.aliases)
    if isinstance(node, cst.Import) and cut.aliases:
        names, _, _ = drop_items(node.names, cut.aliases, before=_NOTHING, after=_NOTHING)
        return node.with_changes(names=names)
    changed: cst.CSTNode = node
    if cut.strings:
        changed = cut_strings(changed, cut.strings)
    if cut.names:
        changed = cut_elements(changed, cut.names)
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
