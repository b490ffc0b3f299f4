"""Tell whether a parameter can be folded, and whether a function is sound after it was."""

import ast
from collections.abc import Iterator

from pipeline.language.python.bindings import DEFINITIONS, arguments_of, bindings_in
from pipeline.language.python.option.code import FunctionNode, defaults_of, last_name

# Decorators that hand on what they are given, and show no signature to anybody.
HARMLESS = frozenset({
    "abstractmethod",
    "asynccontextmanager",
    "cache",
    "classmethod",
    "contextmanager",
    "deprecated",
    "lru_cache",
    "override",
    "overload",
    "staticmethod",
    "wraps",
})
# They see parameters as data.
REFLECTIVE = frozenset({"eval", "exec", "globals", "locals", "vars"})


def refuse_function(node: FunctionNode, name: str, *, named: str) -> str:
    """Return why a parameter of a function cannot be folded; empty when it can.

    Args:
        node: the function.
        name: of the parameter.
        named: the name that its default is, as `os.sep`; empty for a constant.
    """
    return _refuse_signature(node, name) or _refuse_body(node, name, named=named)


def _refuse_signature(node: FunctionNode, name: str) -> str:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if last_name(called) not in HARMLESS:
            return f"{node.name} is decorated with {ast.unparse(called)}"
    place = next((place for it, _, place in defaults_of(node) if it == name), None)
    if node.args.vararg and place is not None:
        return f"{node.name} takes more arguments after it"
    return ""


def _refuse_body(node: FunctionNode, name: str, *, named: str) -> str:
    own = named.partition(".")[0]
    for inner in ast.walk(node):
        bound = set(_bound(inner)) if inner is not node else set()
        if name in bound:
            return f"{node.name} binds it anew"
        if own and own in bound:
            return f"{node.name} has its own {named}"
        if isinstance(inner, ast.Call) and last_name(inner.func) in REFLECTIVE:
            return f"{node.name} calls {last_name(inner.func)}"
    return ""


def _bound(node: ast.AST) -> Iterator[str | None]:
    """Yield the names that one node binds, in whatever scope."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
            yield from (it.arg for it in arguments_of(node.args))
        case ast.Lambda():
            yield from (it.arg for it in arguments_of(node.args))
        case ast.ClassDef(name=name) | ast.ExceptHandler(name=name):
            yield name
        case ast.MatchAs(name=name) | ast.MatchStar(name=name) | ast.MatchMapping(rest=name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (it.asname or it.name.partition(".")[0] for it in aliases)


def refuse_result(before: FunctionNode, after: FunctionNode, name: str) -> str:
    """Return what is wrong with a function that was folded; empty when nothing is."""
    if _is_generator(before) and not _is_generator(after):
        return f"{before.name} would be no generator"
    names = _read(after)
    if name in names and not any(it.arg == name for it in arguments_of(after.args)):
        return f"{before.name} still reads it"
    own = _locals(before)
    lost = (own - _locals(after)) & names - {name}
    return f"{before.name} would read {min(lost)}, which is never set" if lost else ""


def _is_generator(node: FunctionNode) -> bool:
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(inner, (*DEFINITIONS, ast.Lambda)):
            waiting += ast.iter_child_nodes(inner)
    return False


def _locals(node: FunctionNode) -> set[str]:
    bound = {it.name for it in bindings_in(node.body, path="", scope="")}
    return bound | {it.arg for it in arguments_of(node.args)}


def _read(node: ast.AST) -> set[str]:
    return {
        it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)
    }
