"""Keep track of where a walk through a module is, and of what it has met."""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from pipeline.language.python.bindings import (
    Binding,
    bindings_in,
    grouped,
    has_lazy_annotations,
)
from pipeline.language.python.uses import Mention, Row, Use, UseKind


@dataclass(slots=True, kw_only=True)
class Frame:
    """A function, class or comprehension that the scanner is in."""

    name: str
    is_class: bool
    bound: dict[str, list[Binding]]


class Walker:
    """Holds the scopes and statements that a walk through one module is in; see `scan`."""

    # What to do with each kind of node; of others, all that is below is visited.
    handlers: ClassVar[dict[type[ast.AST], Callable[..., None]]] = {}

    def __init__(self, *, path: str, tree: ast.Module) -> None:
        self.path = path
        self.has_lazy_annotations = has_lazy_annotations(tree)
        self.frames: list[Frame] = []
        self.scope = ""
        self.kind: UseKind = "read"
        self.at_import = True
        self.in_export = False
        self.in_annotation = False
        # Of the statement that is visited, as far as it runs at import.
        self.row: Row = ""
        self.bindings = grouped(bindings_in(tree.body, path=path, scope=""))
        self.imports: list[Binding] = []
        self.exports: set[str] = set()
        self.mentions: list[Mention] = []
        self.attributes: dict[str, list[Use]] = {}
        self.words: dict[str, list[Use]] = {}

    def global_mentions(self) -> list[Mention]:
        """Return the mentions of names that the module binds or may get from a star import."""
        if "*" in self.bindings:
            return self.mentions
        return [it for it in self.mentions if it.imports or it.chain[0] in self.bindings]

    def visit_all(self, nodes: Sequence[ast.AST | None]) -> None:
        """Visit nodes in order."""
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit(self, node: ast.AST) -> None:
        """Visit one node with all below it."""
        handler = self.handlers.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.visit_all(tuple(ast.iter_child_nodes(node)))

    def visit_as(self, kind: UseKind, nodes: Sequence[ast.AST]) -> None:
        """Visit nodes whose outermost name is used in a particular way."""
        for node in nodes:
            self.kind = kind
            self.visit(node)
            self.kind = "read"

    def visit_deferred(self, nodes: Sequence[ast.AST | None]) -> None:
        """Visit nodes that do not run at import."""
        before, self.at_import = self.at_import, False
        self.visit_all(nodes)
        self.at_import = before

    def visit_inside(self, frame: Frame, nodes: Sequence[ast.AST | None]) -> None:
        """Visit nodes in a scope of their own."""
        before = self.scope
        self.frames.append(frame)
        self.scope = ".".join(filter(None, (before, frame.name)))
        self.visit_all(nodes)
        self.scope = before
        self.frames.pop()

    def visit_annotation(self, node: ast.expr | None) -> None:
        """Visit an annotation, reading strings in it as code."""
        if node is None:
            return
        self.in_annotation = True
        if self.has_lazy_annotations:
            self.visit_deferred([node])
        else:
            self.visit(node)
        self.in_annotation = False

    def use(self, line: int, kind: UseKind, text: str = "") -> Use:
        """Describe a use at a line of the present scope."""
        return Use(
            path=self.path,
            line=line,
            scope=self.scope,
            kind=kind,
            at_import=self.at_import,
            text=text,
            row=self.row if self.at_import else "",
        )

    def mention(self, chain: tuple[str, ...], line: int) -> None:
        """Keep a name unless it is local to a function."""
        use = self.use(line, self.kind, ".".join(chain))
        for depth, frame in enumerate(reversed(self.frames)):
            # A class's names are seen by its own statements only.
            bound = frame.bound.get(chain[0]) if depth == 0 or not frame.is_class else None
            if bound is None:
                continue
            if frame.is_class:
                # It may be the method or, before that is bound, the global name: keep both.
                self.attributes.setdefault(chain[0], []).append(use)
                continue
            if all(binding.kind == "import" for binding in bound):
                self.mentions.append(Mention(use=use, chain=chain, imports=tuple(bound)))
            return
        self.mentions.append(Mention(use=use, chain=chain, imports=()))

    def frame_of(self, body: Sequence[ast.AST], *, name: str, is_class: bool) -> Frame:
        """Return a scope with the names that its body binds."""
        scope = ".".join(filter(None, (self.scope, name)))
        bound = grouped(bindings_in(body, path=self.path, scope=scope))
        for names in list(bound.values()):
            declared = {binding.kind for binding in names} & {"global", "nonlocal"}
            if "global" in declared:
                self.bindings.setdefault(names[0].name, []).extend(names)
            if declared:
                del bound[names[0].name]
        return Frame(name=name, is_class=is_class, bound=bound)

    @contextmanager
    def in_row(self, row: Row) -> Iterator[None]:
        """Visit what can go without the rest of its statement."""
        before, self.row = self.row, row
        yield
        self.row = before
