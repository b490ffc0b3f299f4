"""Walk through a module, put what is known in the place of an option, and mark what goes."""

import libcst as cst

from pipeline.language.python.option.survey import FileOption, Scoped, Survey
from pipeline.language.python.option.value import Known, Named, Worth

ENDINGS = (cst.Return, cst.Raise, cst.Continue, cst.Break)
STATEMENTS = (cst.BaseCompoundStatement, cst.SimpleStatementLine)
# Where a constant, text and tuples aside, cannot stand.
DEMANDING = (
    *(cst.Attribute, cst.Subscript, cst.For, cst.CompFor, cst.StarredElement),
    *(cst.StarredDictElement, cst.WithItem, cst.Await, cst.From),
)


class Marker(cst.CSTTransformer):
    """Knows what is worth what, and leaves out what nothing reaches."""

    def __init__(self, option: FileOption, found: Survey, *, default: Known) -> None:
        super().__init__()
        self.option = option
        self.found = found
        self.worth = Worth(reads=found.reads, default=default)
        self.scoped = Scoped(option.busy)
        # Ids of what goes: its inside does not matter, and statements are taken out.
        self.dead: set[int] = set()
        self.branches: list[cst.CSTNode] = []
        self.dropped: list[cst.CSTNode] = []
        self.docs: list[str] = []
        self.num_folds = 0
        self.refusal = ""

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Enter what matters and is not decided as a whole."""
        is_of_interest = self.scoped.enter(node) and id(node) not in self.dead
        if not is_of_interest or self.known(node) is not None:
            return False
        if id(node) in self.found.touched:
            if isinstance(node, cst.If | cst.IfExp):
                self._choose(node)
            elif isinstance(node, cst.IndentedBlock):
                self._end(node)
        return True

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Rewrite what is decided; leave the rest to the rule of its kind."""
        result: object = updated_node
        known = self.known(original_node)
        if known is not None:
            assert isinstance(original_node, cst.BaseExpression)
            result = self.literal(original_node, known)
        elif id(original_node) in self.dead:
            is_statement = isinstance(original_node, STATEMENTS)
            result = cst.RemoveFromParent() if is_statement else updated_node
        else:
            result = super().on_leave(original_node, updated_node)
        self.scoped.leave(original_node)
        return result  # type: ignore[return-value]

    def known(self, node: cst.CSTNode) -> Known | None:
        """Return what an expression is worth if that is known and depends on the option."""
        if not isinstance(node, cst.BaseExpression) or id(node) not in self.found.touched:
            return None
        known = self.worth.of(node)
        if known is None and id(node) in self.found.conditions:
            truth = self.worth.truth(node)
            return None if truth is None else Known(truth)
        return known

    def literal(self, node: cst.BaseExpression, known: Known) -> cst.BaseExpression:
        """Write the default, or what is made of it, in the place of an expression."""
        value, default = known.value, self.worth.default.value
        is_default = type(value) is type(default) and value == default
        text = self.option.default if is_default or isinstance(value, Named) else repr(value)
        parent = self.found.parents[id(node)]
        self._refuse_place(node, parent, known)
        self.num_folds += 1
        literal = cst.parse_expression(text)
        if isinstance(literal, cst.UnaryOperation) and isinstance(parent, cst.BinaryOperation):
            literal = literal.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return within(node, literal)

    def _refuse_place(self, node: cst.BaseExpression, parent: cst.CSTNode, known: Known) -> None:
        """Note when a constant cannot stand where the option did."""
        if isinstance(known.value, Named):
            return
        is_plain = known.value is None or isinstance(known.value, bool | int | float)
        is_called = isinstance(parent, cst.Call) and parent.func is node
        is_starred = isinstance(parent, cst.Arg) and parent.star
        is_operand = known.value is None and isinstance(parent, cst.BinaryOperation)
        is_compared = isinstance(parent, cst.Comparison | cst.ComparisonTarget) and (
            not _is_comparable(parent, known)
        )
        is_quoted = isinstance(known.value, str) and isinstance(
            parent, cst.FormattedStringExpression
        )
        is_demanded = is_plain and isinstance(parent, DEMANDING)
        if is_called or is_starred or is_operand or is_compared or is_quoted or is_demanded:
            self.refusal = f"its default cannot stand in its place in {self.scoped.qualname}"

    def _choose(self, node: cst.If | cst.IfExp) -> None:
        """Mark the branch of a decided choice that is never taken."""
        truth = self.worth.truth(node.test)
        if truth is None:
            return
        self.num_folds += 1
        branch = node.orelse if truth else node.body
        if branch is not None:
            self.dead.add(id(branch))
            is_apart = not isinstance(branch, cst.SimpleStatementSuite | cst.BaseExpression)
            self.branches += [branch] if is_apart else []

    def _end(self, block: cst.IndentedBlock) -> None:
        """Mark what stands below a decided choice that never comes back."""
        for number, statement in enumerate(block.body):
            if isinstance(statement, cst.If) and self._is_decided_end(statement):
                rest = block.body[number + 1 :]
                self.dead.update(map(id, rest))
                self.branches += rest
                return

    def _is_decided_end(self, node: cst.If) -> bool:
        truth = self.worth.truth(node.test) if id(node) in self.found.touched else None
        if truth is None:
            return False
        return self._ends(node.body) if truth else self._ends(node.orelse)

    def _ends(self, node: cst.CSTNode | None) -> bool:
        if isinstance(node, cst.If):
            return self._is_decided_end(node) or (self._ends(node.body) and self._ends(node.orelse))
        if isinstance(node, cst.Else):
            return self._ends(node.body)
        if not isinstance(node, cst.BaseSuite) or not node.body:
            return False
        last = node.body[-1]
        if isinstance(last, cst.SimpleStatementLine):
            return isinstance(last.body[-1], ENDINGS)
        return isinstance(last, ENDINGS) or (isinstance(last, cst.If) and self._ends(last))

    def truth(self, node: cst.CSTNode, test: cst.BaseExpression) -> bool | None:
        """Return whether the condition of a node holds, if that depends on the option."""
        return self.worth.truth(test) if id(node) in self.found.touched else None


def _is_comparable(parent: cst.CSTNode, known: Known) -> bool:
    """Tell whether a constant can be compared, with no warning, to what is not known."""
    targets = parent.comparisons if isinstance(parent, cst.Comparison) else [parent]
    kinds = {type(it.operator) for it in targets if isinstance(it, cst.ComparisonTarget)}
    if kinds & {cst.Is, cst.IsNot}:
        return known.value is None or isinstance(known.value, bool)
    is_equality = kinds <= {cst.Equal, cst.NotEqual}
    is_left = isinstance(parent, cst.Comparison) and kinds <= {cst.In, cst.NotIn}
    return is_equality or is_left or known.value is not None


def within(outer: cst.BaseExpression, inner: cst.BaseExpression) -> cst.BaseExpression:
    """Put an expression into the brackets of another one."""
    return inner.with_changes(lpar=[*outer.lpar, *inner.lpar], rpar=[*inner.rpar, *outer.rpar])
