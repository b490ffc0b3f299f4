"""Tell classes whose objects agree with whatever they are compared to."""

import ast
from collections.abc import Iterator

COMPARISONS = frozenset({
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__contains__",
})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def agreeing_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the names of classes, and of patched ones, that answer a comparison by heart.

    By heart is: the same constant in every case, whatever the other side is; or an answer that
    depends on how often it was asked.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            if any(_is_by_heart(it) for it in _comparisons(node)) or _lies_about_class(node):
                yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            name = ast.unparse(node.targets[0])
            if name.rpartition(".")[2] in COMPARISONS and _is_constant(node.value.body):
                yield name


def _comparisons(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.Lambda]:
    for it in node.body:
        if isinstance(it, ast.FunctionDef) and it.name in COMPARISONS:
            yield it
        elif isinstance(it, ast.Assign) and isinstance(it.value, ast.Lambda):
            names = {name.id for name in it.targets if isinstance(name, ast.Name)}
            if names & COMPARISONS:
                yield it.value


def _is_by_heart(function: ast.FunctionDef | ast.Lambda) -> bool:
    if isinstance(function, ast.Lambda):
        return _is_constant(function.body)
    returned = [it.value for it in ast.walk(function) if isinstance(it, ast.Return)]
    stores = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    counts = any(
        isinstance(target, ast.Attribute)
        for it in ast.walk(function)
        if isinstance(it, stores)
        for target in (it.targets if isinstance(it, ast.Assign) else [it.target])
    )
    return counts or (
        bool(returned) and all(it is not None and _is_constant(it) for it in returned)
    )


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int)


def _lies_about_class(node: ast.ClassDef) -> bool:
    names = {it.name for it in node.body if isinstance(it, ast.FunctionDef)}
    return "__class__" in names
