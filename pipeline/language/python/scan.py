"""Read from one module what it binds, imports, exports and mentions."""

import ast
import re
from collections.abc import Callable
from typing import ClassVar

from pipeline.language.python.arms import arms_in
from pipeline.language.python.bindings import (
    COMPREHENSIONS,
    Comprehension,
    arguments_of,
    as_names,
    import_bindings,
    is_export,
)
from pipeline.language.python.guards import guards_in
from pipeline.language.python.symbols import constants_in, definitions_in
from pipeline.language.python.text import parse, split_lines
from pipeline.language.python.uses import Scan, UseKind
from pipeline.language.python.walk import Walker

# A string that is nothing but a name, a dotted name or `module:name`.
_NAME = re.compile(r"(?:[^\W\d]\w*[.:])*([^\W\d]\w*)")
_WORD = re.compile(r"[^\W\d]\w*")


def scan(path: str, source: str) -> Scan | None:
    """Scan a module; None when this Python cannot parse it."""
    tree = parse(source)
    if tree is None:
        return None
    scanner = _Scanner(path=path, tree=tree)
    try:
        scanner.visit_all(tree.body)
    except RecursionError:
        return None
    return Scan(
        path=path,
        definitions=definitions_in(tree, path=path, lines=split_lines(source)),
        constants=constants_in(tree),
        guards=tuple(guards_in(tree)),
        arms=arms_in(tree, source),
        bindings=scanner.bindings,
        imports=scanner.imports,
        exports=scanner.exports,
        mentions=scanner.global_mentions(),
        attributes=scanner.attributes,
        words=scanner.words,
    )


class _Scanner(Walker):
    """Says of each kind of node what a walk does there."""

    def on_statement(self, node: ast.Assign | ast.AugAssign) -> None:
        self.in_export = is_export(node)
        self.visit_all(tuple(ast.iter_child_nodes(node)))
        self.in_export = False

    def on_annotated(self, node: ast.AnnAssign) -> None:
        self.in_export = is_export(node)
        self.visit_all([node.target, node.value])
        self.in_export = False
        self.visit_annotation(node.annotation)

    def on_expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            self.on_docstring(node.value.value, line=node.lineno)
            return
        self.in_export = is_export(node)
        with self.in_row("statement" if isinstance(node.value, ast.Call) else ""):
            self.visit(node.value)
        self.in_export = False

    def on_display(self, node: ast.List | ast.Set | ast.Dict | ast.Tuple) -> None:
        with self.in_row("element"):
            self.visit_all(tuple(ast.iter_child_nodes(node)))

    def on_docstring(self, text: str, *, line: int) -> None:
        if ">>>" not in text:
            return
        examples = (row for row in text.splitlines() if row.lstrip().startswith((">>>", "...")))
        for word in {word for row in examples for word in _WORD.findall(row)}:
            self.words.setdefault(word, []).append(self.use(line, "doctest"))

    def on_import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.imports.extend(import_bindings(node, path=self.path, scope=self.scope))

    def on_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_as("decorator", node.decorator_list)
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        for argument in arguments_of(node.args):
            self.visit_annotation(argument.annotation)
        self.visit_annotation(node.returns)
        frame = self.frame_of([*as_names(node.args), *node.body], name=node.name, is_class=False)
        before, self.at_import = self.at_import, False
        self.visit_inside(frame, node.body)
        self.at_import = before

    def on_lambda(self, node: ast.Lambda) -> None:
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        frame = self.frame_of(as_names(node.args), name="", is_class=False)
        before, self.at_import = self.at_import, False
        self.visit_inside(frame, [node.body])
        self.at_import = before

    def on_class(self, node: ast.ClassDef) -> None:
        self.visit_as("decorator", node.decorator_list)
        self.visit_as("base class", node.bases)
        self.visit_all(node.keywords)
        self.visit_inside(self.frame_of(node.body, name=node.name, is_class=True), node.body)

    def on_comprehension(self, node: Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        targets = [generator.target for generator in node.generators]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        conditions = [test for generator in node.generators for test in generator.ifs]
        inner = [*targets, *(other.iter for other in others), *conditions, *results]
        self.visit_inside(self.frame_of(targets, name="", is_class=False), inner)

    def on_if(self, node: ast.If) -> None:
        self.visit(node.test)
        if "__name__" in {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}:
            self.visit_deferred(node.body)
        else:
            self.visit_all(node.body)
        self.visit_all(node.orelse)

    def on_subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        # What is between the brackets of `dict[str, int]` is no list to take from.
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        self.visit_all(slices)

    def on_call(self, node: ast.Call) -> None:
        kind: UseKind = "called" if self.kind == "read" else self.kind
        self.visit_as(kind, [node.func])
        self.visit_all([*node.args, *node.keywords])

    def on_name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Store):
            self.mention((node.id,), node.lineno)

    def on_attribute(self, node: ast.Attribute) -> None:
        names: list[str] = []
        value: ast.expr = node
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            self.attributes.setdefault(value.attr, []).append(self.use(value.lineno, self.kind))
            value = value.value
        if isinstance(value, ast.Name):
            self.mention((value.id, *reversed(names)), node.lineno)
        else:
            self.visit_as("read", [value])

    def on_constant(self, node: ast.Constant) -> None:
        text = node.value
        if not isinstance(text, str):
            return
        if self.in_export:
            self.exports.add(text)
        elif match := _NAME.fullmatch(text):
            self.words.setdefault(match[1], []).append(self.use(node.lineno, "string", text))
        if self.in_annotation:
            self.on_quoted(text, line=node.lineno)

    def on_quoted(self, text: str, *, line: int) -> None:
        tree = parse(text.strip())
        for part in ast.walk(tree) if tree else ():
            if isinstance(part, ast.Name):
                self.mention((part.id,), line)

    def on_formatted(self, node: ast.JoinedStr) -> None:
        self.visit_all([part for part in node.values if isinstance(part, ast.FormattedValue)])

    handlers: ClassVar[dict[type[ast.AST], Callable[..., None]]] = {
        ast.AnnAssign: on_annotated,
        ast.Assign: on_statement,
        ast.AsyncFunctionDef: on_function,
        ast.Attribute: on_attribute,
        ast.AugAssign: on_statement,
        ast.Call: on_call,
        ast.ClassDef: on_class,
        ast.Constant: on_constant,
        ast.Dict: on_display,
        ast.Expr: on_expression,
        ast.FunctionDef: on_function,
        ast.If: on_if,
        ast.Import: on_import,
        ast.ImportFrom: on_import,
        ast.JoinedStr: on_formatted,
        ast.Lambda: on_lambda,
        ast.List: on_display,
        ast.Name: on_name,
        ast.Set: on_display,
        ast.Subscript: on_subscript,
        ast.Tuple: on_display,
        **dict.fromkeys(COMPREHENSIONS, on_comprehension),
    }
