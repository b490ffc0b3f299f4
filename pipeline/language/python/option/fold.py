"""Fold an option to its default in one module: what only another value reaches goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from pipeline.language.python.option.docs import cut_docs
from pipeline.language.python.option.expressions import ExpressionFolder, bare
from pipeline.language.python.option.items import without_parameter
from pipeline.language.python.option.survey import FileOption, survey
from pipeline.language.python.option.value import dotted, is_pure, read_default
from pipeline.language.python.symbols import Span, nodes_named
from pipeline.language.python.text import parse, split_lines
from pipeline.task.python_text import first_line, last_line

Removable = cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A module without an option."""

    text: str
    # Lines of the original that are gone, the docstrings' aside.
    dropped: tuple[Span, ...]
    # Those of them that only another value than the default reaches.
    branches: tuple[Span, ...]
    # What the docstrings said of it.
    docs: tuple[str, ...]
    # Conditions and values that became simpler.
    num_folds: int


@dataclass(frozen=True, slots=True)
class _Module:
    """A parsed module with the places of its nodes."""

    tree: cst.Module
    places: dict[cst.CSTNode, CodeRange]


@lru_cache(maxsize=32)
def _read(source: str) -> _Module:
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    return _Module(wrapper.module, dict(wrapper.resolve(PositionProvider)))


def fold(source: str, option: FileOption) -> Folded | str:
    """Return a module without an option, or in one line why that is not sure to be right.

    Only the statements of the module that it stands in are read anew: LibCST takes a second for a
    thousand lines.

    Args:
        source: of the module.
        option: what of it stands there.
    """
    spans = _concerned(source, option)
    if spans is None:
        return _fold(source, option)
    lines = split_lines(source)
    pieces = [_fold("".join(lines[it.first_line - 1 : it.last_line]), option) for it in spans]
    folded = [it for it in pieces if not isinstance(it, str)]
    if len(folded) < len(pieces):
        return next(it for it in pieces if isinstance(it, str))
    for span, piece in zip(reversed(spans), reversed(folded), strict=True):
        lines[span.first_line - 1 : span.last_line] = [piece.text]
    pairs = list(zip(spans, folded, strict=True))
    return Folded(
        text="".join(lines),
        dropped=tuple(_moved(it, span) for span, piece in pairs for it in piece.dropped),
        branches=tuple(_moved(it, span) for span, piece in pairs for it in piece.branches),
        docs=tuple(dict.fromkeys(text for piece in folded for text in piece.docs)),
        num_folds=sum(it.num_folds for it in folded),
    )


def _concerned(source: str, option: FileOption) -> list[Span] | None:
    """Return the top-level statements with what an option stands in; None when there is more."""
    tree = parse(source)
    if tree is None:
        return None
    found = [list(nodes_named(tree, name)) for name in option.busy]
    if not all(found):
        return None
    lines = {node.lineno for nodes in found for node in nodes}
    around = [it for it in tree.body if lines.intersection(range(it.lineno, last_line(it) + 1))]
    spans = [Span(first_line=first_line(it), last_line=last_line(it)) for it in around]
    shared = any(one.last_line >= other.first_line for one, other in pairwise(spans))
    return None if shared else spans


def _moved(span: Span, piece: Span) -> Span:
    offset = piece.first_line - 1
    return Span(first_line=span.first_line + offset, last_line=span.last_line + offset)


def _fold(source: str, option: FileOption) -> Folded | str:
    default = read_default(option.default)
    if default is None:
        return f"its default is no constant: {option.default}"
    try:
        module = _read(source)
        folder = _Folder(option, survey(module.tree, option), default=default)
        tree = module.tree.visit(folder)
    except cst.ParserSyntaxError:
        return "the module cannot be parsed"
    except cst.CSTValidationError:
        return "the code cannot be written without it"
    except RecursionError:
        return "the module is nested too deep"
    if folder.refusal:
        return folder.refusal
    return Folded(
        text=tree.code,
        dropped=_spans([*folder.branches, *folder.dropped], module),
        branches=_spans(folder.branches, module),
        docs=tuple(folder.docs),
        num_folds=folder.num_folds,
    )


def _spans(nodes: Sequence[cst.CSTNode], module: _Module) -> tuple[Span, ...]:
    places = (module.places[it] for it in nodes)
    return tuple(Span(first_line=it.start.line, last_line=it.end.line) for it in places)


class _Folder(ExpressionFolder):
    """Rewrites statements and definitions."""

    def leave_If(  # noqa: N802  named by LibCST
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.BaseStatement | Removable:
        """Put the branch that is taken in the place of a choice that is decided."""
        if id(original_node) not in self.found.touched:
            return updated_node
        node = updated_node.with_changes(
            orelse=self._rest(original_node.orelse, updated_node.orelse)
        )
        parent = self.found.parents[id(original_node)]
        if isinstance(parent, cst.If) and parent.orelse is original_node:
            return node  # the choice that it is a rest of decides
        truth = self.worth.truth(original_node.test)
        if truth is None:
            return _tidied(node)
        return _unwrapped(node, node.body if truth else node.orelse)

    def _rest(
        self, original: cst.If | cst.Else | None, updated: cst.If | cst.Else | None
    ) -> cst.If | cst.Else | None:
        """Return what of an `elif` or `else` is left: a decided `elif` is none."""
        if not isinstance(original, cst.If) or not isinstance(updated, cst.If):
            return updated
        truth = self.truth(original, original.test)
        if truth is None:
            return updated
        if truth:
            return cst.Else(body=updated.body, leading_lines=updated.leading_lines)
        return updated.orelse

    def leave_Assert(  # noqa: N802
        self, original_node: cst.Assert, updated_node: cst.Assert
    ) -> cst.Assert | cst.RemovalSentinel:
        """Drop what always holds."""
        is_void = self.truth(original_node, original_node.test) is True
        return cst.RemoveFromParent() if is_void else updated_node

    def leave_While(  # noqa: N802
        self, original_node: cst.While, updated_node: cst.While
    ) -> cst.While | cst.RemovalSentinel:
        """Drop a loop that is never entered."""
        truth = self.truth(original_node, original_node.test)
        if truth is False and original_node.orelse is None:
            self.branches.append(original_node.body)
            return cst.RemoveFromParent()
        return updated_node

    def leave_Assign(  # noqa: N802
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.Assign | cst.RemovalSentinel:
        """Drop the statement that keeps the option."""
        targets = [it.target for it in original_node.targets]
        is_kept = id(original_node.value) in self.found.reads and self._is_attribute(targets)
        return cst.RemoveFromParent() if is_kept else updated_node

    def leave_AnnAssign(  # noqa: N802
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.AnnAssign | cst.RemovalSentinel:
        """Drop the statement that keeps the option."""
        is_read = id(original_node.value) in self.found.reads
        is_kept = is_read and self._is_attribute([original_node.target])
        return cst.RemoveFromParent() if is_kept else updated_node

    def _is_attribute(self, targets: Sequence[cst.BaseExpression]) -> bool:
        return bool(self.option.attribute) and [dotted(it) for it in targets] == [
            f"self.{self.option.attribute}"
        ]

    def leave_Expr(  # noqa: N802
        self, original_node: cst.Expr, updated_node: cst.Expr
    ) -> cst.Expr | cst.RemovalSentinel:
        """Drop the statement that adds the flag to a parser."""
        call = original_node.value
        if not self.option.flag or not isinstance(call, cst.Call):
            return updated_node
        is_added = isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument"
        texts = [it.value for it in call.args if isinstance(it.value, cst.SimpleString)]
        is_ours = any(it.evaluated_value == self.option.flag for it in texts)
        return cst.RemoveFromParent() if is_added and is_ours else updated_node

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        """Drop a line that nothing is left of."""
        if updated_node.body:
            return updated_node
        self.dropped.append(original_node)
        return cst.RemoveFromParent()

    def leave_FunctionDef(  # noqa: N802
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Take the parameter and what is said of it out."""
        del original_node
        if self.scoped.qualname not in self.option.owners:
            return updated_node
        changed = self._documented(updated_node)
        if not _has_parameter(changed.params, self.option.name):
            return changed
        params = without_parameter(changed.params, self.option.name)
        if params is None:
            self.refusal = f"{self.scoped.qualname} has it in another form"
            return changed
        return changed.with_changes(params=params)

    def leave_ClassDef(  # noqa: N802
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        """Take what is said of a constructor's parameter out."""
        del original_node
        owners = {f"{self.scoped.qualname}.{name}" for name in ("__init__", "__new__")}
        is_owner = bool(owners & self.option.owners)
        return self._documented(updated_node) if is_owner else updated_node

    def _documented(self, node: cst.CSTNodeT) -> cst.CSTNodeT:
        """Return a definition whose docstring does not speak of the option."""
        body = getattr(node, "body", None)
        first = body.body[0] if isinstance(body, cst.IndentedBlock) and body.body else None
        if not isinstance(first, cst.SimpleStatementLine) or not first.body:
            return node
        expression = first.body[0]
        text = expression.value if isinstance(expression, cst.Expr) else None
        if not isinstance(text, cst.SimpleString) or text.value[-3:] not in {'"""', "'''"}:
            return node
        changed, docs = cut_docs(text.value, self.option.name)
        self.docs += docs
        return node.deep_replace(text, text.with_changes(value=changed)) if docs else node  # type: ignore[return-value]


def _has_parameter(parameters: cst.Parameters, name: str) -> bool:
    lists = (parameters.posonly_params, parameters.params, parameters.kwonly_params)
    return any(it.name.value == name for params in lists for it in params)


def _tidied(node: cst.If) -> cst.If | cst.RemovalSentinel:
    """Drop a choice with nothing to choose, and brackets that nothing is left for."""
    is_empty = isinstance(node.body, cst.IndentedBlock) and not node.body.body
    if is_empty and node.orelse is None and is_pure(node.test):
        return cst.RemoveFromParent()
    is_spaced = not node.whitespace_before_test.empty
    return node.with_changes(test=bare(node.test)) if is_spaced else node


def _unwrapped(
    node: cst.If, branch: cst.BaseSuite | cst.If | cst.Else | None
) -> cst.If | Removable:
    """Return the statements of a branch, to stand where the choice did."""
    blank = [it for it in node.leading_lines if it.comment is None]
    if branch is None:
        return cst.RemoveFromParent()
    if isinstance(branch, cst.If):
        return branch.with_changes(leading_lines=[*blank, *branch.leading_lines])
    suite = branch.body if isinstance(branch, cst.Else) else branch
    leading = blank if isinstance(branch, cst.Else) else node.leading_lines
    if isinstance(suite, cst.SimpleStatementSuite):
        line = cst.SimpleStatementLine(
            body=suite.body, leading_lines=leading, trailing_whitespace=suite.trailing_whitespace
        )
        return cst.FlattenSentinel([line])
    statements = [it for it in suite.body if isinstance(it, cst.BaseStatement)]
    if not statements:
        return cst.RemoveFromParent()
    first, *others = statements
    own = getattr(first, "leading_lines", ())
    return cst.FlattenSentinel([first.with_changes(leading_lines=[*leading, *own]), *others])
