"""Write mutants of a module: the same text with one small mistake in the body of a function."""

import ast
import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from pipeline.task.python_text import FunctionNode, first_line, last_line, parse, parse_shared

Mistake = Literal[
    "negated condition",
    "other comparison",
    "other constant",
    "dropped statement",
    "nothing returned",
    "swapped arguments",
    "and for or",
]

Node = ast.expr | ast.stmt

COMPARISONS: dict[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Eq: (rb"==", b"!="),
    ast.NotEq: (rb"!=", b"=="),
    ast.Lt: (rb"<", b"<="),
    ast.LtE: (rb"<=", b"<"),
    ast.Gt: (rb">", b">="),
    ast.GtE: (rb">=", b">"),
    ast.Is: (rb"\bis\b", b"is not"),
    ast.IsNot: (rb"\bis\s+not\b", b"is"),
    ast.In: (rb"\bin\b", b"not in"),
    ast.NotIn: (rb"\bnot\s+in\b", b"in"),
}
JUNCTIONS: dict[type[ast.boolop], tuple[bytes, bytes]] = {
    ast.And: (rb"\band\b", b"or"),
    ast.Or: (rb"\bor\b", b"and"),
}
# What can be left out without a name that is then missing.
DROPPABLE = (ast.AugAssign, ast.Delete, ast.Raise, ast.Continue)
# Python 3.11 does not know where the parts of an f-string are; a loop with a mistake in its
# condition, or in what changes it, may never end.
LEFT_ALONE = (ast.JoinedStr, ast.While, ast.ClassDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One mistake in a module: a stretch of bytes, and what takes its place.

    Example: `Mutant(line=3, mistake="other comparison", start=40, end=42, new=b"!=")`.
    """

    # Of the code that is changed, from 1.
    line: int
    mistake: Mistake
    # Offsets in the module.
    start: int
    end: int
    new: bytes

    def apply(self, content: bytes) -> bytes | None:
        """Return the module with the mistake in it; nothing when that is no Python."""
        mutated = content[: self.start] + self.new + content[self.end :]
        first, last = _around(content, self)
        # Of a large module the rest would take most of the time.
        changed = content[first : self.start] + self.new + content[self.end : last]
        return mutated if parse(changed) is not None else None


def mutants_of(content: bytes, lines: AbstractSet[int]) -> tuple[Mutant, ...]:
    """Return the mistakes that can be made on some lines of a module, in order of the text.

    Only what a call runs is changed: no defaults, annotations, decorators or class bodies.
    """
    tree = parse_shared(content)
    if tree is None:
        return ()
    source = _Source(content)
    mutants = {
        mutant
        for function in ast.walk(tree)
        if isinstance(function, FunctionNode)
        for statement in function.body
        if not lines.isdisjoint(range(first_line(statement), last_line(statement) + 1))
        for node in _nodes(statement)
        if node.lineno in lines
        for make in MISTAKES
        for mutant in make(node, source)
    }
    return tuple(sorted(mutants, key=lambda it: (it.start, it.end, it.mistake)))


def _around(content: bytes, mutant: Mutant) -> tuple[int, int]:
    """Return where the statement of the module that a mutant is in starts and ends."""
    tree = parse_shared(content)
    assert tree is not None, mutant
    source = _Source(content)
    spans = (source.lines(first_line(it), last_line(it)) for it in tree.body)
    return next((start, end) for start, end in spans if start <= mutant.start < end)


class _Source:
    """The bytes of a module, found by the positions of its nodes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        # As the parser counts lines: it knows no form feeds.
        ends = [found.end() for found in re.finditer(rb"\r\n|\r|\n", content)]
        self._starts = [0, *ends]

    def start(self, node: Node) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Return where a line starts, and where another one ends."""
        return self._starts[first - 1], [*self._starts, len(self.content)][last]

    def text(self, node: Node) -> bytes:
        return self.content[self.start(node) : self.end(node)]

    def instead(self, node: Node, new: bytes, mistake: Mistake) -> Mutant:
        """Put something in the place of a node."""
        start, end = self.start(node), self.end(node)
        return Mutant(line=node.lineno, mistake=mistake, start=start, end=end, new=new)

    def between(
        self, left: ast.expr, right: ast.expr, change: tuple[bytes, bytes], mistake: Mistake
    ) -> Iterator[Mutant]:
        """Replace the operator between two expressions, unless a comment could be meant."""
        pattern, new = change
        first = self.end(left)
        gap = self.content[first : self.start(right)]
        found = re.search(pattern, gap)
        if found is not None and b"#" not in gap:
            start, end = first + found.start(), first + found.end()
            yield Mutant(line=left.lineno, mistake=mistake, start=start, end=end, new=new)


def _nodes(node: ast.AST) -> Iterator[Node]:
    """Yield a statement and what is in it, without functions inside, which have their own turn."""
    if isinstance(node, (*LEFT_ALONE, ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST) and name not in {"annotation", "format_spec"}:
                yield from _nodes(child)


def _negate(node: Node, source: _Source) -> Iterator[Mutant]:
    if isinstance(node, ast.If | ast.IfExp):
        text = source.text(node.test)
        yield source.instead(node.test, b"(not (" + text + b"))", "negated condition")


def _compare(node: Node, source: _Source) -> Iterator[Mutant]:
    if isinstance(node, ast.Compare):
        change = COMPARISONS[type(node.ops[0])]
        yield from source.between(node.left, node.comparators[0], change, "other comparison")


def _count(node: Node, source: _Source) -> Iterator[Mutant]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield source.instead(node, str(node.value + 1).encode(), "other constant")


def _drop(node: Node, source: _Source) -> Iterator[Mutant]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_set = isinstance(node, ast.Assign) and not any(
        isinstance(it, ast.Name) for target in node.targets for it in ast.walk(target)
        if isinstance(getattr(it, "ctx", None), ast.Store)
    )  # fmt: skip
    if isinstance(node, DROPPABLE) or is_call or is_set:
        assert isinstance(node, ast.stmt)
        yield source.instead(node, b"pass", "dropped statement")


def _return(node: Node, source: _Source) -> Iterator[Mutant]:
    value = node.value if isinstance(node, ast.Return) else None
    if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
        yield source.instead(value, b"None", "nothing returned")


def _swap(node: Node, source: _Source) -> Iterator[Mutant]:
    if not isinstance(node, ast.Call) or len(node.args) < 2:  # noqa: PLR2004  a pair
        return
    one, other = node.args[:2]
    texts = source.text(one), source.text(other)
    is_plain = not any(isinstance(it, ast.Starred | ast.GeneratorExp) for it in (one, other))
    if is_plain and texts[0] != texts[1]:
        gap = source.content[source.end(one) : source.start(other)]
        yield Mutant(
            line=node.lineno,
            mistake="swapped arguments",
            start=source.start(one),
            end=source.end(other),
            new=texts[1] + gap + texts[0],
        )


def _join(node: Node, source: _Source) -> Iterator[Mutant]:
    if isinstance(node, ast.BoolOp):
        change = JUNCTIONS[type(node.op)]
        yield from source.between(node.values[0], node.values[1], change, "and for or")


MISTAKES: tuple[Callable[[Node, _Source], Iterator[Mutant]], ...] = (
    _negate,
    _compare,
    _count,
    _drop,
    _return,
    _swap,
    _join,
)
