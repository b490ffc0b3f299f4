"""Take elements out of the lists, sets, tuples and dictionaries of a statement with LibCST."""

from collections.abc import Callable, Collection, Sequence

import libcst as cst

from pipeline.language.python.separators import drop_items

_NOTHING = cst.SimpleWhitespace("")
_Element = cst.BaseElement | cst.BaseDictElement
_Display = cst.List | cst.Set | cst.Dict


def cut_strings(node: cst.CSTNode, strings: Collection[str]) -> cst.CSTNode:
    """Drop strings from all lists, sets and tuples."""

    def is_gone(element: _Element) -> bool:
        value = element.value if isinstance(element, cst.Element) else None
        return isinstance(value, cst.SimpleString) and value.evaluated_value in strings

    return _visited(node, _Cutter(is_gone))


def cut_elements(node: cst.CSTNode, names: Collection[str]) -> cst.CSTNode:
    """Drop the elements that mention names, dotted as written.

    Of lists, sets and dictionaries in one another the innermost loses an element. A tuple in one of
    them is a row of it, and goes whole.
    """
    return _visited(node, _Cutter(lambda element: _mentions(element, names)))


def _visited(node: cst.CSTNode, cutter: "_Cutter") -> cst.CSTNode:
    changed = node.visit(cutter)
    assert isinstance(changed, cst.CSTNode)
    return changed


def _mentions(node: cst.CSTNode, names: Collection[str]) -> bool:
    """Tell whether a node mentions a name, outside of lists, sets and dictionaries in it."""
    if isinstance(node, cst.Name | cst.Attribute) and (text := _dotted(node)):
        return text in names
    if isinstance(node, cst.List | cst.Set | cst.Dict):
        return False
    return any(_mentions(child, names) for child in node.children)


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr.value}" if owner else ""
    return node.value if isinstance(node, cst.Name) else ""


class _Cutter(cst.CSTTransformer):
    """Drops elements; asked of each as it was before anything was dropped."""

    def __init__(self, is_gone: Callable[[_Element], bool]) -> None:
        super().__init__()
        self._is_gone = is_gone
        # Lists, sets, dictionaries and tuples that are being visited.
        self._depth = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Count the way in."""
        self._depth += isinstance(node, cst.List | cst.Set | cst.Dict | cst.Tuple)
        return True

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Drop what goes from a list, set, dictionary or outermost tuple."""
        changed: cst.CSTNode = updated_node
        match original_node, updated_node:
            case cst.List(), cst.List():
                changed = self._cut_between(original_node, updated_node, name="bracket")
            case cst.Set() | cst.Dict(), cst.Set() | cst.Dict():
                changed = self._cut_between(original_node, updated_node, name="brace")
            case cst.Tuple(), cst.Tuple() if self._depth == 1:
                changed = self._cut_tuple(original_node, updated_node)
        self._depth -= isinstance(original_node, cst.List | cst.Set | cst.Dict | cst.Tuple)
        return changed  # type: ignore[return-value]

    def _cut_between(self, before: _Display, node: _Display, *, name: str) -> cst.BaseExpression:
        """Drop what goes between the two brackets of a name: `lbracket` and `rbracket`."""
        left, right = getattr(node, f"l{name}"), getattr(node, f"r{name}")
        found: list[_Element] = [*node.elements]
        elements, first, last = drop_items(
            found,
            self._places(before.elements),
            before=left.whitespace_after,
            after=right.whitespace_before,
        )
        if not elements and isinstance(node, cst.Set):  # `{}` is a dictionary
            return cst.Call(cst.Name("set"), lpar=node.lpar, rpar=node.rpar)
        brackets = {
            f"l{name}": left.with_changes(whitespace_after=first),
            f"r{name}": right.with_changes(whitespace_before=last),
        }
        return node.with_changes(elements=elements, **brackets)

    def _cut_tuple(self, before: cst.Tuple, node: cst.Tuple) -> cst.Tuple:
        left, right = list(node.lpar), list(node.rpar)
        elements, first, last = drop_items(
            node.elements,
            self._places(before.elements),
            before=left[-1].whitespace_after if left else _NOTHING,
            after=right[0].whitespace_before if right else _NOTHING,
        )
        if not left:
            return node.with_changes(elements=elements) if elements else cst.Tuple([])
        left[-1] = left[-1].with_changes(whitespace_after=first)
        right[0] = right[0].with_changes(whitespace_before=last)
        return node.with_changes(elements=elements, lpar=left, rpar=right)

    def _places(self, elements: Sequence[_Element]) -> set[int]:
        return {place for place, element in enumerate(elements) if self._is_gone(element)}
