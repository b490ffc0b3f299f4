"""Cut symbols, imports and exports out of a module, leaving every other byte as it is."""

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.arms import Arm, is_elif
from pipeline.language.python.bindings import (
    DEFINITIONS,
    Binding,
    DefinitionNode,
    assigned_name,
    import_bindings,
    is_export,
)
from pipeline.language.python.guards import is_for_types
from pipeline.language.python.lines import Edit, apply_edits, is_alone, with_comments
from pipeline.language.python.statements import StatementCut, cut_decorators, cut_statements
from pipeline.language.python.symbols import Span, span_of
from pipeline.language.python.text import BYTE_ORDER_MARK, column, parse, split_lines

# Statements that may lose an element, or go as a whole.
_ROWS = (ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr)


def keep_import(_binding: Binding) -> bool:
    """Keep every import."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """What to cut from one module.

    Example: `Cuts(symbols=frozenset({"take", "Box.size"}), exports=frozenset({"take"}))`.
    """

    # Qualified names: each definition of the name goes, with decorators and comments above.
    symbols: frozenset[str] = frozenset()
    # Top-level names whose plain assignments go.
    constants: frozenset[str] = frozenset()
    # Strings that go from `__all__`.
    exports: frozenset[str] = frozenset()
    # Lines of statements that go as a whole: registrations, and what is bound by more than a name.
    statements: frozenset[int] = frozenset()
    # First lines of top-level statements that choose between imports, and go.
    guards: frozenset[int] = frozenset()
    # (line, name as written) of elements that go from lists, sets, tuples and dictionaries.
    elements: frozenset[tuple[int, str]] = frozenset()
    # Calls and branches that go from functions.
    arms: frozenset[Arm] = frozenset()
    # Tells of each imported name, bound anywhere in the module, whether it goes.
    is_gone_import: Callable[[Binding], bool] = keep_import


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Statements of one suite."""

    body: Sequence[ast.stmt]
    # What qualified names in it start with; None where they have none, as under `if`.
    prefix: str | None
    # Line of the statement that opens it; 0 of the module.
    header: int


def cut(source: str, cuts: Cuts, *, path: str = "") -> str:
    """Return a module after the cuts; suites left empty get a `pass`.

    The path is only handed on to `is_gone_import`.

    Raises:
        ValueError: the module does not parse.
    """
    tree = parse(source)
    if tree is None:
        raise ValueError(f"cannot cut {path or 'a module'}: it does not parse")
    mark = BYTE_ORDER_MARK if source.startswith(BYTE_ORDER_MARK) else ""
    lines = split_lines(source.removeprefix(mark))
    cutter = _Cutter(path=path, lines=lines, cuts=cuts)
    block = _Block(body=tree.body, prefix="", header=0)
    return mark + apply_edits(lines, list(cutter.edit(block)))


class _Cutter:
    """Holds one module's lines and what goes from them."""

    def __init__(self, *, path: str, lines: Sequence[str], cuts: Cuts) -> None:
        self.path = path
        self.lines = lines
        self.cuts = cuts

    def edit(self, block: _Block) -> Iterator[Edit]:
        """Yield the edits of a suite and all below it."""
        rows = list(_rows(block.body))
        edits = [self._edit_row(row, block=block) for row in rows]
        gone = [edit for edit in edits if edit is not None and not edit.text]
        if is_elif(block.body[0], self.lines) and gone:
            yield from gone
            return
        if block.header and len(gone) == len(rows):
            line = self.lines[block.body[0].lineno - 1]
            margin = line[: len(line) - len(line.lstrip())]
            yield self._passing(gone[0].span, prefix=margin)
            yield from gone[1:]
            return
        for row, edit in zip(rows, edits, strict=True):
            if edit is not None:
                yield edit
                continue
            yield from self._edit_decorators(row[0], opens_block=row[0] is block.body[0])
            yield from self._edit_inside(row[0], prefix=block.prefix)

    def _edit_inside(self, node: ast.stmt, *, prefix: str | None) -> Iterator[Edit]:
        """Yield the edits of what is in a statement that stays."""
        if isinstance(node, ast.If):
            yield from self._edit_branches(node, prefix=prefix)
            return
        for inner in _suites(node, prefix=prefix):
            arm = self._gone_arm(inner.body)
            if arm is None:
                yield from self.edit(inner)
            else:
                yield Edit(span=arm.span, text="", opens_block=False)

    def _edit_branches(
        self, node: ast.If, *, prefix: str | None, is_first: bool = True
    ) -> Iterator[Edit]:
        """Yield the edits of an `if` that keeps a branch; what is then the first one opens it."""
        own, *rest = _suites(node, prefix=prefix)
        arm = self._gone_arm(node.body)
        if arm is not None:
            yield Edit(span=arm.span, text="", opens_block=False)
        else:
            if is_first and is_elif(node, self.lines):
                line = self.lines[node.lineno - 1].replace("elif", "if", 1)
                span = Span(first_line=node.lineno, last_line=node.lineno)
                yield Edit(span=span, text=line, opens_block=False)
            yield from self.edit(own)
        for other in rest:
            (following, *_) = other.body
            is_open = is_first and arm is not None
            if (
                isinstance(following, ast.If)
                and is_elif(following, self.lines)
                and not self._is_gone(following)
            ):
                yield from self._edit_branches(following, prefix=prefix, is_first=is_open)
            else:
                yield from self.edit(other)

    def _gone_arm(self, body: Sequence[ast.stmt]) -> Arm | None:
        """Return the arm that goes with a suite, if it goes."""
        branches = (it for it in self.cuts.arms if not it.is_call)
        return next((it for it in branches if it.body.first_line == body[0].lineno), None)

    def _is_gone(self, node: ast.stmt) -> bool:
        """Tell whether all branches of an `if` go."""
        if not isinstance(node, ast.If) or self._gone_arm(node.body) is None:
            return False
        return not node.orelse or (
            is_elif(node.orelse[0], self.lines) and self._is_gone(node.orelse[0])
        )

    def _edit_decorators(self, node: ast.stmt, *, opens_block: bool) -> Iterator[Edit]:
        """Yield the edit of the lines above a definition that stays, such as its parameters."""
        if not isinstance(node, DEFINITIONS) or not node.decorator_list:
            return
        span = Span(first_line=span_of(node).first_line, last_line=node.lineno - 1)
        lines = range(span.first_line, span.last_line + 1)
        names = frozenset(name for line, name in self.cuts.elements if line in lines)
        if names:
            text = "".join(self.lines[span.first_line - 1 : span.last_line])
            text = cut_decorators(text, names)
            yield Edit(span=span, text=text, opens_block=opens_block)

    def _edit_row(self, row: Sequence[ast.stmt], *, block: _Block) -> Edit | None:
        place = block.body.index(row[0])
        before = block.body[place - 1] if place else None
        after = block.header if before is None else before.end_lineno or before.lineno
        if isinstance(row[0], DEFINITIONS):
            span = self._gone_definition(row[0], prefix=block.prefix)
            if span is None:
                return None
            span = with_comments(span, lines=self.lines, after=after)
            return Edit(span=span, text="", opens_block=not place)
        if self._is_hollow(row[0], block=block) or self._is_gone(row[0]):
            span = Span(first_line=row[0].lineno, last_line=row[0].end_lineno or row[0].lineno)
            opens_block = not place and not is_elif(row[0], self.lines)
            return Edit(span=span, text="", opens_block=opens_block)
        cuts = [self._cut_of(node, prefix=block.prefix) for node in row]
        if all(cut == StatementCut() for cut in cuts):
            return None
        return self._edit_simple(row, cuts=cuts, after=after, opens_block=not place)

    def _is_hollow(self, node: ast.stmt, *, block: _Block) -> bool:
        """Tell whether a statement only chose between imports that go."""
        if not block.header and node.lineno in self.cuts.guards:
            return True
        if not isinstance(node, ast.If) or node.orelse or not is_for_types(node):
            return False
        (inner,) = _suites(node, prefix=block.prefix)
        edits = [self._edit_row(row, block=inner) for row in _rows(inner.body)]
        return all(edit is not None and not edit.text for edit in edits)

    def _gone_definition(self, node: DefinitionNode, *, prefix: str | None) -> Span | None:
        is_gone = prefix is not None and prefix + node.name in self.cuts.symbols
        return span_of(node) if is_gone else None

    def _edit_simple(
        self,
        row: Sequence[ast.stmt],
        *,
        cuts: Sequence[StatementCut],
        after: int,
        opens_block: bool,
    ) -> Edit:
        first = row[0]
        span = Span(first_line=first.lineno, last_line=row[-1].end_lineno or row[-1].lineno)
        start = column(self.lines[first.lineno - 1], offset=first.col_offset)
        prefix = self.lines[first.lineno - 1][:start]
        if not all(cut.is_dropped for cut in cuts):
            text = "".join(self.lines[span.first_line - 1 : span.last_line])
            text = prefix + cut_statements(text[start:], cuts)
            return Edit(span=span, text=text, opens_block=opens_block)
        if prefix.strip():
            # The suite stands behind the colon: `if x: import gone`.
            return self._passing(span, prefix=prefix)
        if isinstance(first, ast.Assign | ast.AnnAssign) and is_alone(span, lines=self.lines):
            span = with_comments(span, lines=self.lines, after=after)
        return Edit(span=span, text="", opens_block=opens_block)

    def _passing(self, span: Span, *, prefix: str) -> Edit:
        last = self.lines[span.last_line - 1]
        ending = last[len(last.rstrip("\r\n")) :]
        return Edit(span=span, text=f"{prefix}pass{ending}", opens_block=False)

    def _cut_of(self, node: ast.stmt, *, prefix: str | None) -> StatementCut:
        """Decide what goes from a simple statement."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            bindings = list(import_bindings(node, path=self.path, scope=""))
            places = frozenset(
                place for place, it in enumerate(bindings) if self.cuts.is_gone_import(it)
            )
            return StatementCut(is_dropped=len(places) == len(bindings), aliases=places)
        if is_export(node):
            return _cut_of_export(node, names=self.cuts.exports)
        if not isinstance(node, _ROWS):
            return StatementCut()
        is_constant = prefix == "" and assigned_name(node) in self.cuts.constants
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        names = frozenset(name for line, name in self.cuts.elements if line in lines)
        is_row = not self.cuts.statements.isdisjoint(lines) or any(
            it.is_call and it.span.first_line == node.lineno for it in self.cuts.arms
        )
        return StatementCut(is_dropped=is_constant or is_row, names=names)


def _rows(body: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Group statements that share a line: `import a; import b`."""
    row: list[ast.stmt] = []
    for node in body:
        if row and node.lineno > (row[-1].end_lineno or row[-1].lineno):
            yield row
            row = []
        row.append(node)
    yield row


def _suites(node: ast.stmt, *, prefix: str | None) -> Iterator[_Block]:
    inner = f"{node.name}." if isinstance(node, ast.ClassDef) and prefix == "" else None
    owners = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    for owner in owners:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(owner, field, None)
            if isinstance(body, list) and body:
                header = getattr(owner, "lineno", node.lineno)
                yield _Block(body=body, prefix=inner, header=header)


def _cut_of_export(node: ast.stmt, *, names: Collection[str]) -> StatementCut:
    strings = {it.value for it in ast.walk(node) if isinstance(it, ast.Constant)}
    gone = frozenset(it for it in strings if isinstance(it, str) and it in names)
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "remove"))):
            return StatementCut(is_dropped=bool(gone))
    return StatementCut(strings=gone)
