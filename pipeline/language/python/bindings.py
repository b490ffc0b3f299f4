"""Find the names that a block of statements binds."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

BindingKind = Literal["definition", "assignment", "import", "global", "nonlocal"]
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
DefinitionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One way a scope binds a name.

    Example: `from .core import take as first` is `Binding(name="first", kind="import",
    module=".core", target="take", …)`.
    """

    path: str
    line: int
    # Qualified name of the function or class it is in; empty at module level.
    scope: str
    # The name that is bound; `*` for a star import.
    name: str
    kind: BindingKind
    # Imports only: the module as written, with leading dots.
    module: str = ""
    # Imports only: the name taken from it; empty when the module itself is bound.
    target: str = ""
    # Imports only: the module that is loaded; of `import a.b`, which binds `a`, it is `a.b`.
    loaded: str = ""


def bindings_in(body: Iterable[ast.AST], *, path: str, scope: str) -> Iterator[Binding]:
    """Yield what the statements bind in their own scope, nested scopes left out."""
    stack = list(body)
    while stack:
        node = stack.pop()
        kind: BindingKind = "assignment"
        names: Iterable[str | None] = ()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from import_bindings(node, path=path, scope=scope)
            continue
        if isinstance(node, DEFINITIONS):
            kind, names = "definition", (node.name,)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            kind, names = ("global" if isinstance(node, ast.Global) else "nonlocal"), node.names
        else:
            names = _assigned(node)
            stack.extend(_same_scope(node))
        for name in names:
            if name:
                line = getattr(node, "lineno", 0)
                yield Binding(path=path, line=line, scope=scope, name=name, kind=kind)


def import_bindings(
    node: ast.Import | ast.ImportFrom, *, path: str, scope: str
) -> Iterator[Binding]:
    """Yield one binding for each alias of an import statement, in order."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            module, target = "." * node.level + (node.module or ""), alias.name
            name, loaded = alias.asname or alias.name, module
        else:
            # `import a.b` binds `a`, `import a.b as c` binds the submodule.
            name = alias.asname or alias.name.partition(".")[0]
            module, target = (alias.name if alias.asname else name), ""
            loaded = alias.name
        yield Binding(
            path=path,
            line=node.lineno,
            scope=scope,
            name=name,
            kind="import",
            module=module,
            target=target,
            loaded=loaded,
        )


def grouped(bindings: Iterable[Binding]) -> dict[str, list[Binding]]:
    """Group bindings by name."""
    names: dict[str, list[Binding]] = {}
    for binding in bindings:
        names.setdefault(binding.name, []).append(binding)
    return names


def has_lazy_annotations(tree: ast.Module) -> bool:
    """Tell whether annotations stay unevaluated, by a `__future__` import."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    names = {alias.name for node in imports if node.module == "__future__" for alias in node.names}
    return "annotations" in names


def is_export(node: ast.stmt) -> bool:
    """Tell whether a statement assigns or extends `__all__`."""
    match node:
        case ast.Assign(targets=targets):
            return any(_is_all(target) for target in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _is_all(target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
            return _is_all(value)
    return False


def assigned_name(node: ast.stmt) -> str:
    """Return the name that a plain assignment binds; empty for other statements."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__all__"


def _assigned(node: ast.AST) -> tuple[str | None, ...]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return (name,)
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return (name,)
        case ast.MatchMapping(rest=name):
            return (name,)
    return ()


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.comprehension):
        # The target lives in the comprehension; a walrus in it binds outside.
        yield node.iter
        yield from node.ifs
        return
    yield from ast.iter_child_nodes(node)


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a function, however they are passed."""
    extra = [it for it in (arguments.vararg, arguments.kwarg) if it is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def as_names(arguments: ast.arguments) -> list[ast.Name]:
    """Return the parameters of a function as the names that they bind."""
    return [ast.Name(id=it.arg, ctx=ast.Store()) for it in arguments_of(arguments)]
