"""Find where a module reads an option: the parameter, and the attribute that keeps it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import libcst as cst

Scope = cst.FunctionDef | cst.ClassDef

# What parsed arguments of a command are called.
NAMESPACES = frozenset({
    *("args", "arguments", "cli_args", "namespace", "ns", "options", "opts", "parsed"),
    "parsed_args",
})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOption:
    """What of an option stands in one module.

    Example: `FileOption(name="strict", default="False", owners=frozenset({"Box.__init__"}), …)`.
    """

    name: str
    # As written.
    default: str
    # Functions and methods that lose the parameter.
    owners: frozenset[str] = frozenset()
    # Attribute of `self` that keeps the parameter; empty when none is that alone.
    attribute: str = ""
    # Flag of a command that is added to a parser; its attribute is one of parsed arguments then.
    flag: str = ""
    # Classes that read the attribute.
    classes: frozenset[str] = frozenset()
    # Last names of what is called with the parameter, and its place among the arguments without
    # names; None when it has none.
    callees: Mapping[str, int | None] = field(default_factory=dict)
    # Definitions that mention any of this; all others are as they were.
    busy: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class Survey:
    """What of a module depends on an option; nodes by their ids."""

    # Names and attributes that read it.
    reads: set[int] = field(default_factory=set)
    # What holds a read.
    touched: set[int] = field(default_factory=set)
    # Expressions of which only the truth counts.
    conditions: set[int] = field(default_factory=set)
    # Node -> what it stands in.
    parents: dict[int, cst.CSTNode] = field(default_factory=dict)


def survey(module: cst.Module, option: FileOption) -> Survey:
    """Find all reads of an option in a module."""
    surveyor = _Surveyor(option)
    module.visit(surveyor)
    return surveyor.found


class Scoped:
    """Knows the qualified name of the function or class that a walk is in."""

    def __init__(self, busy: Collection[str]) -> None:
        self.busy = busy
        self.scopes: list[Scope] = []

    @property
    def qualname(self) -> str:
        """The qualified name of the innermost scope."""
        return ".".join(it.name.value for it in self.scopes)

    def enter(self, node: cst.CSTNode) -> bool:
        """Step into a node; tell whether anything in it matters."""
        if not isinstance(node, Scope):
            return True
        self.scopes.append(node)
        is_known = all(isinstance(it, cst.ClassDef) for it in self.scopes[:-1])
        return not is_known or isinstance(node, cst.ClassDef) or self.qualname in self.busy

    def leave(self, node: cst.CSTNode) -> None:
        """Step out of a node."""
        if isinstance(node, Scope):
            self.scopes.pop()


class _Surveyor(cst.CSTVisitor):
    def __init__(self, option: FileOption) -> None:
        super().__init__()
        self.option = option
        self.scoped = Scoped(option.busy)
        self.found = Survey()
        self.stack: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        parent = self.stack[-1] if self.stack else node
        self.stack.append(node)
        is_of_interest = self.scoped.enter(node)
        for condition in _conditions(node, is_condition=id(node) in self.found.conditions):
            self.found.conditions.add(id(condition))
        if self._is_read(node, parent):
            self.found.reads.add(id(node))
            self.found.touched.update(map(id, self.stack))
            pairs = zip(self.stack[1:], self.stack, strict=False)
            self.found.parents.update({id(inner): outer for inner, outer in pairs})
            return False
        return is_of_interest

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.stack.pop()
        self.scoped.leave(original_node)

    def _is_read(self, node: cst.CSTNode, parent: cst.CSTNode) -> bool:
        if isinstance(node, cst.Name):
            is_ours = node.value == self.option.name and not _is_label(node, parent)
            return is_ours and self._is_in_owner()
        return (
            isinstance(node, cst.Attribute)
            and node.attr.value == self.option.attribute
            and not isinstance(parent, cst.AssignTarget | cst.AnnAssign)
            and self._is_kept_in(node.value)
        )

    def _is_in_owner(self) -> bool:
        """Tell whether the walk is in the body of a function that has the parameter."""
        names = []
        for scope in self.scoped.scopes:
            names.append(scope.name.value)
            if ".".join(names) in self.option.owners:
                return scope.body in self.stack
        return False

    def _is_kept_in(self, owner: cst.BaseExpression) -> bool:
        """Tell whether what is asked for the attribute is what has it."""
        if self.option.flag:
            return isinstance(owner, cst.Name) and owner.value in NAMESPACES
        return bool(self.scoped.scopes) and self.scoped.scopes[0].name.value in self.option.classes


def _is_label(node: cst.Name, parent: cst.CSTNode) -> bool:
    """Tell a name that is not read: of a keyword, an attribute, a parameter."""
    if isinstance(parent, cst.Arg):
        return parent.keyword is node
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    return isinstance(parent, cst.Param | cst.FunctionDef | cst.ClassDef)


def _conditions(node: cst.CSTNode, *, is_condition: bool) -> list[cst.BaseExpression]:
    """Return the parts of a node of which only the truth counts."""
    if isinstance(node, cst.If | cst.While | cst.IfExp | cst.Assert | cst.CompIf):
        return [node.test]
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return [node.expression]
    if isinstance(node, cst.BooleanOperation) and is_condition:
        return [node.left, node.right]
    return []
