"""Tell what expressions are worth while an option has its default."""

import ast
import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import libcst as cst

COMPARISONS: dict[type[cst.BaseCompOp], Callable[[Any, Any], object]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.In: lambda one, other: one in other,
    cst.NotIn: lambda one, other: one not in other,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
}
TYPES: dict[str, type] = {
    it.__name__: it for it in (bool, bytes, dict, float, int, list, set, str, tuple, type)
}
# What may be evaluated or not without anybody noticing.
PURE = (
    *(cst.Name, cst.Attribute, cst.BaseNumber, cst.SimpleString, cst.Comparison),
    *(cst.BooleanOperation, cst.UnaryOperation),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A value of which only the name is known, such as a sentinel.

    Example: `Named("_MISSING")`.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """What an expression is worth: a constant, or something Named."""

    value: object

    @property
    def truth(self) -> bool | None:
        """Whether it counts as true; None when nobody can tell."""
        return None if isinstance(self.value, Named) else bool(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """An option's reads and its default: all that decides what an expression is worth."""

    # Ids of the nodes that read it.
    reads: Collection[int]
    default: Known

    def of(self, node: cst.CSTNode | None) -> Known | None:
        """Return what an expression is worth, or None when that depends on more."""
        if node is None:
            return None
        if id(node) in self.reads:
            return self.default
        for kind, rule in RULES:
            if isinstance(node, kind):
                return rule(self, node)
        return None

    def truth(self, node: cst.BaseExpression) -> bool | None:
        """Return whether a condition holds; side effects of its left side aside, see `is_pure`."""
        if isinstance(node, cst.BooleanOperation):
            left, right = self.truth(node.left), self.truth(node.right)
            deciding = isinstance(node.operator, cst.Or)
            if left is deciding or (right is deciding and is_pure(node.left)):
                return deciding
            return None if left is None or right is None else right
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.truth(node.expression)
            return None if inner is None else not inner
        known = self.of(node)
        return None if known is None else known.truth


def is_pure(node: cst.BaseExpression) -> bool:
    """Tell whether nobody notices that an expression is not evaluated."""
    parts = [node]
    while parts:
        part = parts.pop()
        if not isinstance(part, PURE):
            return False
        parts += [it for it in part.children if isinstance(it, cst.BaseExpression)]
        if isinstance(part, cst.Comparison):
            parts += [it.comparator for it in part.comparisons]
    return True


def read_default(text: str) -> Known | None:
    """Return a default as written; None when it is not a constant nor a name.

    >>> read_default("(1, 'a')"), read_default("os.sep")
    (Known(value=(1, 'a')), Known(value=Named(text='os.sep')))
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return Known(Named(text)) if text.replace(".", "").isidentifier() else None
    return Known(value) if _is_frozen(value) else None


def _is_frozen(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_frozen, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)


def _of_name(worth: Worth, node: cst.Name | cst.Attribute) -> Known | None:
    text = dotted(node)
    if text in {"None", "True", "False"}:
        return Known(ast.literal_eval(text))
    named = worth.default.value
    return worth.default if isinstance(named, Named) and named.text == text else None


def dotted(node: cst.BaseExpression) -> str:
    """Render a name or an attribute of a name; else empty."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr.value}"
    return ""


def _of_literal(_worth: Worth, node: cst.BaseNumber | cst.SimpleString) -> Known:
    return Known(node.evaluated_value)  # type: ignore[union-attr]


def _of_not(worth: Worth, node: cst.UnaryOperation) -> Known | None:
    inner = worth.of(node.expression) if isinstance(node.operator, cst.Not) else None
    truth = None if inner is None else inner.truth
    return None if truth is None else Known(not truth)


def _of_junction(worth: Worth, node: cst.BooleanOperation) -> Known | None:
    left = worth.of(node.left)
    truth = None if left is None else left.truth
    if truth is None:
        return None
    return left if truth is isinstance(node.operator, cst.Or) else worth.of(node.right)


def _of_choice(worth: Worth, node: cst.IfExp) -> Known | None:
    truth = worth.truth(node.test)
    return None if truth is None else worth.of(node.body if truth else node.orelse)


def _of_items(worth: Worth, node: cst.Tuple | cst.List | cst.Set) -> Known | None:
    values = [worth.of(it.value) for it in node.elements if isinstance(it, cst.Element)]
    known = [it.value for it in values if it is not None]
    return Known(tuple(known)) if len(known) == len(node.elements) else None


def _of_comparison(worth: Worth, node: cst.Comparison) -> Known | None:
    if len(node.comparisons) > 1:
        return None
    (target,) = node.comparisons
    left, right = worth.of(node.left), worth.of(target.comparator)
    if left is None or right is None:
        return None
    kind = type(target.operator)
    values = (left.value, right.value)
    if any(isinstance(it, Named) for it in values):
        is_same = kind in {cst.Is, cst.IsNot} and values[0] == values[1]
        return Known(kind is cst.Is) if is_same else None
    if kind in {cst.Is, cst.IsNot} and not any(it is None for it in values):
        return None
    try:
        return Known(bool(COMPARISONS[kind](*values)))
    except TypeError:
        return None


def _of_call(worth: Worth, node: cst.Call) -> Known | None:
    """Evaluate the calls that guards are made of: `isinstance(option, str)`, `callable(option)`."""
    known = worth.of(node.args[0].value) if node.args else None
    if known is None or isinstance(known.value, Named):
        return None
    name = dotted(node.func)
    if name == "callable" and len(node.args) == 1:
        return Known(value=False)
    if name == "bool" and len(node.args) == 1:
        return Known(bool(known.value))
    if name != "isinstance" or len(node.args) != 2:  # noqa: PLR2004  value and types
        return None
    wanted = node.args[1].value
    items = [it.value for it in wanted.elements] if isinstance(wanted, cst.Tuple) else [wanted]
    types = [TYPES.get(dotted(it)) for it in items]
    return None if None in types else Known(isinstance(known.value, tuple(filter(None, types))))


RULES: tuple[tuple[tuple[type[cst.CSTNode], ...], Callable[..., Known | None]], ...] = (
    ((cst.Name, cst.Attribute), _of_name),
    ((cst.Integer, cst.Float, cst.SimpleString), _of_literal),
    ((cst.UnaryOperation,), _of_not),
    ((cst.BooleanOperation,), _of_junction),
    ((cst.IfExp,), _of_choice),
    ((cst.Tuple, cst.List, cst.Set), _of_items),
    ((cst.Comparison,), _of_comparison),
    ((cst.Call,), _of_call),
)
