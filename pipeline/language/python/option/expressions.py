"""Fold an option to its default inside expressions."""

import libcst as cst

from pipeline.language.python.option.code import CONSTRUCTORS
from pipeline.language.python.option.items import without_argument
from pipeline.language.python.option.marks import Marker, within
from pipeline.language.python.option.value import Known, dotted

ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.SimpleString, cst.BaseNumber)


class ExpressionFolder(Marker):
    """Rewrites expressions from the inside out."""

    def leave_BooleanOperation(  # noqa: N802  named by LibCST
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        """Leave out the side that decides nothing."""
        if id(original_node) not in self.found.touched:
            return updated_node
        deciding = isinstance(original_node.operator, cst.Or)
        if self.worth.truth(original_node.left) is (not deciding):
            return within(updated_node, updated_node.right)
        is_condition = id(original_node) in self.found.conditions
        if is_condition and self.worth.truth(original_node.right) is (not deciding):
            return within(updated_node, updated_node.left)
        return updated_node

    def leave_IfExp(  # noqa: N802
        self, original_node: cst.IfExp, updated_node: cst.IfExp
    ) -> cst.BaseExpression:
        """Leave the branch that is taken."""
        truth = self.truth(original_node, original_node.test)
        if truth is None:
            return updated_node
        return within(updated_node, updated_node.body if truth else updated_node.orelse)

    def leave_UnaryOperation(  # noqa: N802
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        """Drop brackets that nothing is left for."""
        is_spaced = not updated_node.operator.whitespace_after.empty
        if id(original_node) in self.found.touched and is_spaced:
            return updated_node.with_changes(expression=bare(updated_node.expression))
        return updated_node

    def leave_CompFor(  # noqa: N802
        self, original_node: cst.CompFor, updated_node: cst.CompFor
    ) -> cst.CompFor:
        """Drop filters that let everything pass."""
        pairs = zip(original_node.ifs, updated_node.ifs, strict=True)
        kept = [it for was, it in pairs if self.truth(was, was.test) is not True]
        return updated_node.with_changes(ifs=kept)

    def leave_Call(  # noqa: N802
        self, original_node: cst.Call, updated_node: cst.Call
    ) -> cst.Call:
        """Drop an argument that says what is the default anyway."""
        callee = _last_name(original_node.func)
        if callee not in self.option.callees:
            return updated_node
        place = self.option.callees[callee]
        number = _place_of(original_node, self.option.name, place=place)
        known = self.worth.of(original_node.args[number].value) if number is not None else None
        if number is None or known is None or not _is_same(known, self.worth.default):
            return updated_node
        self.num_folds += 1
        return without_argument(updated_node, number)


def _last_name(node: cst.BaseExpression) -> str:
    """Return the last name of a dotted one, of `Box.__init__` the class; see `last_name`."""
    names = dotted(node).split(".")
    if len(names) == 2 and names[1] in CONSTRUCTORS:  # noqa: PLR2004  class and method
        return names[1] if names[0] == "self" else names[0]
    return node.attr.value if isinstance(node, cst.Attribute) else names[-1]


def _place_of(call: cst.Call, name: str, *, place: int | None) -> int | None:
    """Return which argument passes a parameter: by its name, or as the last without one."""
    args = call.args
    plain = [it for it in args if it.keyword is None and not it.star]
    has_stars = any(it.star == "*" for it in args)
    is_unbound = isinstance(call.func, cst.Attribute) and args and dotted(args[0].value) == "self"
    if place is not None and place + bool(is_unbound) == len(plain) - 1 and not has_stars:
        return len(plain) - 1
    named = (
        number
        for number, it in enumerate(args)
        if it.keyword is not None and it.keyword.value == name
    )
    return next(named, None)


def _is_same(one: Known, other: Known) -> bool:
    return type(one.value) is type(other.value) and one.value == other.value


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """Drop brackets around what needs none."""
    is_flat = "\n" not in cst.Module([]).code_for_node(node)
    return node.with_changes(lpar=[], rpar=[]) if isinstance(node, ATOMS) and is_flat else node
