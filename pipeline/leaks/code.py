"""Say what of a function stays in its bytecode and under other names: elements, shape, parameters.

Nothing is compiled or run: all comes from the syntax tree.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from pipeline.task.python_text import FunctionNode

# What every function may hold tells nothing.
_COMMON = frozenset({"self", "cls", "None", "True", "False", "Ellipsis", "0", "1", "-1", "", "2"})


def elements_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names and constants that the code objects of some nodes hold.

    Constants are the texts themselves, others by their `repr`.
    """
    return frozenset(it for node in nodes for it in _elements(node)) - _COMMON


def texts_in(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the texts that stand in some nodes."""
    constants = (it.value for it in nodes if isinstance(it, ast.Constant))
    return [it for it in constants if isinstance(it, str)]


def plain_elements(values: Sequence[object]) -> Iterator[str]:
    """Yield names or constants of a code object as `elements_of` does, tuples taken apart."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from plain_elements(value)
        else:
            yield repr(value)


def _elements(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(name=name):
            yield name
        case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.Constant(value=value):
            yield from plain_elements([value])


def walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a definition in order, without docstrings, annotations, decorators."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_comment", "type_params"}:
            continue
        values = value if isinstance(value, list) else [value]
        if name == "body" and isinstance(value, list):
            values = without_docstring(value) if isinstance(node, _DOCUMENTED) else value
        for it in values:
            if isinstance(it, ast.AST):
                yield it
                yield from walk_code(it)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the statement that documents a definition or module."""
    match getattr(node, "body", None):
        case [ast.Expr(value=ast.Constant(value=str())) as text, *_]:
            return text
    return None


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body after its docstring."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def shape_of(node: FunctionNode) -> str:
    """Render the body of a function with its local names numbered in order of appearance.

    Two functions of one shape do the same, whatever their names, formatting and annotations.
    """
    numbers: dict[str, str] = {}
    for name in _locals_of(node):
        numbers.setdefault(name, f"v{len(numbers)}")
    shape: list[str] = []
    _render(without_docstring(node.body), numbers, shape)
    return "".join(shape)


def anchors_of(node: FunctionNode) -> tuple[str, ...]:
    """Return the names in the body of a function that its locals' names do not change.

    A function of its shape has them too, as they are; the longest first. Others than those of
    ASCII may be written in several ways.
    """
    own = set(_locals_of(node))
    below = (it for each in without_docstring(node.body) for it in (each, *walk_code(each)))
    names = {name for it in below for name in _lasting_names(it, own) if name.isascii()}
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


def _lasting_names(node: ast.AST, own: Collection[str]) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.Name(id=name) if name not in own:
            yield name


def outline_of(node: FunctionNode) -> str:
    """Return the kinds of a function's statements: functions of one shape have one outline."""
    return " ".join(
        f"{type(it).__name__}:{type(getattr(it, 'value', None)).__name__}"
        for it in without_docstring(node.body)
    )


def _locals_of(node: FunctionNode) -> Iterator[str]:
    nodes = [it for it in _nodes_of(node) if isinstance(it, _TELLING_LOCALS)]
    borrowed = {
        name for it in nodes if isinstance(it, ast.Global | ast.Nonlocal) for name in it.names
    }
    for it in nodes:
        match it:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                if name not in borrowed:
                    yield name
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if it is not node:
                yield name


_TELLING_LOCALS = (
    ast.Global, ast.Nonlocal, ast.arg, ast.Name, ast.ExceptHandler,
    ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip


def _nodes_of(node: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` yields, in half the time."""
    found = [node]
    for it in found:
        for name in it._fields:
            value = getattr(it, name, None)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def _render(value: object, numbers: dict[str, str], shape: list[str]) -> None:
    if isinstance(value, list):
        shape.append("[")
        for it in value:
            _render(it, numbers, shape)
        shape.append("]")
    elif isinstance(value, ast.Name):
        shape.append(f"({numbers.get(value.id, value.id)})")
    elif isinstance(value, ast.Constant):
        shape.append(f"<{value.value!r}>")
    elif isinstance(value, ast.AST):
        _render_node(value, numbers, shape)
    else:
        shape.append(repr(value))


def _render_node(node: ast.AST, numbers: dict[str, str], shape: list[str]) -> None:
    shape.append(type(node).__name__)
    for name in node._fields:
        if name in _WITHOUT:
            continue
        value = getattr(node, name)
        if name == "body" and isinstance(node, _DOCUMENTED):
            value = without_docstring(value)
        if isinstance(value, str) and isinstance(node, _NAMING):
            shape.append(f"'{numbers.get(value, value)}'")
        else:
            _render(value, numbers, shape)


# Nodes whose own text is a local name; that of a keyword or an attribute is not.
_NAMING = (ast.arg, ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef)
_WITHOUT = frozenset({"ctx", "annotation", "returns", "type_comment", "type_params", "kind"})


def parameters_of(node: FunctionNode) -> tuple[str, ...]:
    """Return the names of a function's parameters in order, without `self` and `cls`."""
    arguments = node.args
    ordered = [*arguments.posonlyargs, *arguments.args]
    ordered += [arguments.vararg] if arguments.vararg else []
    ordered += arguments.kwonlyargs
    ordered += [arguments.kwarg] if arguments.kwarg else []
    names = [it.arg for it in ordered]
    return tuple(names[1:] if names[:1] in (["self"], ["cls"]) else names)
