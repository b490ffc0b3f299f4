"""Copy test functions within their modules: faithfully, or with an expectation made wrong."""

import ast
import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.task.expectation import expectations
from pipeline.task.python_text import must_parse, parse, parse_shared
from pipeline.task.record import Sentinel

Function = ast.FunctionDef | ast.AsyncFunctionDef

# What a wrapper is given and what it gives back; `Unseen` is raised and warned of by nothing.
WRAPPERS = """
class {unseen}(Warning):
    pass

def {equality}(value):
    kind = type(value)
    if kind is bool:
        return not value
    if kind in (int, float, complex):
        return value + 1 if value + 1 != value else -value
    if kind in (str, bytes):
        return value + (value[:1] or kind(1))
    # An item that is wrong, at the same length: whoever equals all is equal to that as well.
    if kind in (list, tuple):
        return kind([*map({equality}, value[:1]), *value[1:]] or [None])
    if kind in (set, frozenset):
        return kind([*value, object()])
    if kind is dict:
        return {{**value, object(): None}}
    return object()

def {exception}(value):
    return {unseen}

def {truth}(value):
    return not value

def {same}(value):
    return value
"""
# Copies are tried many times by these, and their failures are shrunk.
SLOW_DECORATORS = frozenset({"given"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Test modules with twins in them."""

    # New content of each module that has some.
    files: dict[str, bytes]
    # Id without parameters of each sentinel's twin, in their order. All that run must fail.
    must_fail: tuple[str, ...]
    # The same of each clone, which must pass.
    must_pass: tuple[str, ...]


def find_sentinels(sources: Mapping[str, str], targets: tuple[str, ...]) -> tuple[Sentinel, ...]:
    """Return a sentinel for each expectation in the functions of some tests, in their order.

    They are candidates: whether one fails where its clone passes is to be tried.

    Args:
        sources: text of test modules by path.
        targets: test ids; parameters do not count.
    """
    functions = dict.fromkeys(target.partition("[")[0] for target in targets)
    modules = {path: module for path, text in sources.items() if (module := parse_shared(text))}
    return tuple(
        Sentinel(test=test, number=number, kind=found.kind)
        for test in functions
        for function in _functions(modules, test)
        for number, found in enumerate(expectations(function))
    )


def plant_twins(
    files: Mapping[str, bytes],
    *,
    sentinels: tuple[Sentinel, ...],
    clones: tuple[str, ...],
    names: Iterator[str],
    late: Collection[str] = (),
) -> Planted:
    """Add twins and clones at the end of their modules: no line of what is there moves.

    Both call a wrapper where the expectation is, so that a clone looks like a twin. Code that
    cannot be copied, or whose copy raises when it is defined, is left out: its id goes missing.

    Args:
        files: content by path; holds every module that is planted in.
        sentinels: as of `find_sentinels` on the same files.
        clones: test ids; parameters do not count.
        names: endless new names of tests: `test_keeps_order`.
        late: test ids without parameters of originals that are to run after their copies.
    """
    tests = [it.test for it in sentinels] + [clone.partition("[")[0] for clone in clones]
    numbers: list[int | None] = [it.number for it in sentinels]
    numbers += [None] * len(clones)
    wanted = [
        _Copy(test=test, number=number, name=_renamed(test, next(names)))
        for test, number in zip(tests, numbers, strict=True)
    ]
    by_path: dict[str, list[_Copy]] = {}
    for it in wanted:
        by_path.setdefault(it.path, []).append(it)
    planted = {path: _plant(files[path], copies, names, late) for path, copies in by_path.items()}
    return Planted(
        files={path: content for path, content in planted.items() if content != files[path]},
        must_fail=tuple(it.id for it in wanted[: len(sentinels)]),
        must_pass=tuple(it.id for it in wanted[len(sentinels) :]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy to be planted."""

    # Id without parameters of the original.
    test: str
    # The expectation that is wrong in it; None for a clone.
    number: int | None
    # Of the function.
    name: str

    @property
    def path(self) -> str:
        return self.test.partition("::")[0]

    @property
    def id(self) -> str:
        return f"{self.test.rpartition('::')[0]}::{self.name}"


def _renamed(test: str, name: str) -> str:
    """Return a new name that is collected like the old: suites may look for `check_*`."""
    old = test.rpartition("::")[2]
    prefix = old.partition("_")[0]
    return name if old.startswith("test") else f"{prefix}_{name.partition('_')[2]}"


def _plant(
    content: bytes, copies: list[_Copy], names: Iterator[str], late: Collection[str]
) -> bytes:
    """Return a module with copies at its end, in the order of their names, which is no order."""
    text = _decoded(content)
    module = parse_shared(text)
    if module is None:
        return content
    # A module's tests are called `test_…`; what helps them is not.
    helpers = {key: "_" + next(names).partition("_")[2] for key in (*KINDS, "unseen", "same")}
    pieces = [
        piece
        for it in sorted(copies, key=lambda it: it.name)
        for piece in _pieces(module, it, helpers)
    ]
    pieces += [_deferring(test) for test in dict.fromkeys(it.test for it in copies) if test in late]
    end = "" if text.endswith("\n") else "\n"
    added = end + WRAPPERS.format(**helpers) + "\n" + "\n".join(pieces) + "\n"
    return content + added.encode() if pieces and parse(text + added) else content


KINDS = ("equality", "exception", "truth")


def _deferring(test: str) -> str:
    """Return code that defines a test anew, behind all others: pytest runs them in this order."""
    *classes, name = test.split("::")[1:]
    if not classes:
        return f"if {name!r} in globals():\n    globals()[{name!r}] = globals().pop({name!r})"
    place = ".".join(classes)
    return (
        f"def {name}(test):\n    delattr({place}, {name!r})\n    setattr({place}, {name!r}, test)\n"
        f"if {name!r} in vars({place}):\n    {name}(vars({place})[{name!r}])\ndel {name}"
    )


def _pieces(module: ast.Module, wanted: _Copy, helpers: Mapping[str, str]) -> Iterator[str]:
    """Yield the text that defines a copy; nothing when it cannot be made."""
    for original in _functions({wanted.path: module}, wanted.test):
        function = copy.deepcopy(original)
        found = expectations(function)
        if wanted.number is not None and wanted.number >= len(found):
            return
        function.name = wanted.name
        _drop_docstring(function)
        wrapper = helpers["same"]
        if wanted.number is not None:
            wrapper = helpers[found[wanted.number].kind]
        if found:
            _Wrapping(found[wanted.number or 0].value, wrapper).visit(function)
        try:
            yield ast.unparse(_defining(function, wanted.test.split("::")[1:-1]))
        except ValueError:  # of some nested f-strings there is no text
            return


class _Wrapping(ast.NodeTransformer):
    """Puts a call of a wrapper around one expression."""

    def __init__(self, wrapped: ast.expr, wrapper: str) -> None:
        self._wrapped = wrapped
        self._wrapper = ast.Name(id=wrapper, ctx=ast.Load())

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._wrapped:
            return ast.Call(func=self._wrapper, args=[self._wrapped], keywords=[])
        return self.generic_visit(node)


def _drop_docstring(function: Function) -> None:
    """Drop what would be collected as a doctest of its own."""
    if ast.get_docstring(function) is not None and len(function.body) > 1:
        del function.body[0]


def _defining(function: Function, classes: list[str]) -> ast.Module:
    """Return code that defines a function, for a method in its class, and never raises."""
    body: list[ast.stmt] = [function]
    if classes:
        place = ".".join(classes)
        body += must_parse(f"{place}.{function.name} = {function.name}").body
        body += must_parse(f"del {function.name}").body
    (guard,) = must_parse("try:\n    pass\nexcept Exception:\n    pass").body
    assert isinstance(guard, ast.Try)
    guard.body = body
    return ast.Module(body=[guard], type_ignores=[])


def _functions(modules: Mapping[str, ast.Module], test: str) -> Iterator[Function]:
    """Yield the function of a test when it can be copied to the end of its module."""
    path, *classes, name = test.split("::")
    body: Iterable[ast.stmt] = modules[path].body if path in modules else ()
    for it in classes:
        inside = [node for node in body if isinstance(node, ast.ClassDef) and node.name == it]
        body = inside[-1].body if inside else ()
    found = [node for node in body if isinstance(node, Function) and node.name == name]
    if found and not (classes and _needs_class(found[-1])) and not _is_slow(found[-1]):
        yield found[-1]


def _needs_class(function: Function) -> bool:
    """Tell whether a method means something else outside of the body of its class."""
    names = [node.id for node in ast.walk(function) if isinstance(node, ast.Name)]
    names += [node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    return any(
        name in {"super", "__class__"} or (name.startswith("__") and not name.endswith("__"))
        for name in names
    )


def _is_slow(function: Function) -> bool:
    names = {
        getattr(node, "attr", getattr(node, "id", ""))
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
    }
    return not SLOW_DECORATORS.isdisjoint(names)


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
