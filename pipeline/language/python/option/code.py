"""Read a tree for options: who takes which parameter, who passes it, who stores attributes."""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pipeline.language.python.bindings import DEFINITIONS
from pipeline.language.python.references import Key
from pipeline.language.python.text import parse

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
CONSTRUCTORS = ("__init__", "__new__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A parameter that a function takes.

    Example: `Taken(key=("a/b.py", "Box.__init__"), default="None", place=1)`.
    """

    key: Key
    # As written.
    default: str
    # Among the arguments without names, `self` not counted; None for a keyword-only one.
    place: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A call, with what it passes."""

    path: str
    line: int
    # Qualified name of the function or class it is in; empty at module level.
    scope: str
    # Last name of what is called; empty when it has none.
    callee: str
    node: ast.Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An attribute that is set."""

    path: str
    scope: str
    # `self`, when it is that.
    owner: str
    # What it is set to, when that is a plain name.
    value: str


@dataclass(slots=True, kw_only=True)
class Code:
    """What all modules of a tree say of parameters."""

    # Parameter name -> functions with a default for it.
    taken: dict[str, list[Taken]] = field(default_factory=dict)
    # Last name of what is called -> calls.
    calls: dict[str, list[Passed]] = field(default_factory=dict)
    # Function, class or module -> calls that stand in it directly.
    calls_in: dict[Key, list[Passed]] = field(default_factory=dict)
    # Attribute name -> statements that set it.
    stores: dict[str, list[Stored]] = field(default_factory=dict)
    # Flag, such as `--indent` -> functions and classes with a text that names it.
    flags: dict[str, set[Key]] = field(default_factory=dict)
    # Attribute name -> files that read it from something else than `self`.
    foreign: dict[str, set[str]] = field(default_factory=dict)
    # Function or method -> identifiers that stand in it.
    words: dict[Key, frozenset[str]] = field(default_factory=dict)


def read_code(sources: Mapping[str, str]) -> Code:
    """Read all modules of a tree; those that do not parse, or are too deep, say nothing."""
    code = Code()
    for path, source in sources.items():
        tree = parse(source)
        if tree is not None:
            with suppress(RecursionError):
                _Reader(code, path).read(tree)
    return code


def argument_of(call: ast.Call, name: str, *, place: int | None) -> ast.expr | None:
    """Return what a call passes for a parameter, by its name or by its place."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if place is None:
        return None
    first = call.args[0] if call.args else None
    is_unbound = isinstance(call.func, ast.Attribute) and _is_self(first)
    number = place + is_unbound
    return call.args[number] if number < len(call.args) else None


def defaults_of(node: FunctionNode) -> Iterator[tuple[str, ast.expr, int | None]]:
    """Yield the parameters with a default, that default, and their places; see `Taken`."""
    arguments = node.args
    first_place = len(arguments.args) - len(arguments.defaults)
    for number, default in enumerate(arguments.defaults):
        place = first_place + number
        if place >= 0:
            yield arguments.args[place].arg, default, place + len(arguments.posonlyargs)
    for it, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield it.arg, value, None


class _Reader:
    def __init__(self, code: Code, path: str) -> None:
        self.code = code
        self.path = path

    def read(self, tree: ast.Module) -> None:
        for node in tree.body:
            self._visit(node, scope="", is_known=True)

    def _visit(self, node: ast.AST, *, scope: str, is_known: bool) -> None:
        if isinstance(node, DEFINITIONS):
            qualname = f"{scope}.{node.name}" if scope else node.name
            if is_known and isinstance(node, FunctionNode):
                self._enter(node, qualname)
            is_class = isinstance(node, ast.ClassDef)
            for child in ast.iter_child_nodes(node):
                self._visit(child, scope=qualname, is_known=is_known and is_class and not scope)
            return
        self._note(node, scope)
        for child in ast.iter_child_nodes(node):
            self._visit(child, scope=scope, is_known=is_known)

    def _note(self, node: ast.AST, scope: str) -> None:
        """Enter what one node says."""
        match node:
            case ast.Call():
                self._call(node, scope)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._store(node, scope)
            case ast.Constant(value=str(text)):
                for flag in FLAG.findall(text):
                    self.code.flags.setdefault(flag, set()).add((self.path, scope))
            case ast.Attribute() if not _is_self(node.value):
                self.code.foreign.setdefault(node.attr, set()).add(self.path)

    def _enter(self, node: FunctionNode, qualname: str) -> None:
        key = (self.path, qualname)
        is_method = "." in qualname and "staticmethod" not in map(ast.unparse, node.decorator_list)
        for name, default, place in defaults_of(node):
            number = None if place is None else place - is_method
            taken = Taken(key=key, default=ast.unparse(default), place=number)
            self.code.taken.setdefault(name, []).append(taken)
        self.code.words[key] = self.code.words.get(key, frozenset()) | frozenset(_words(node))

    def _call(self, node: ast.Call, scope: str) -> None:
        callee = last_name(node.func)
        passed = Passed(path=self.path, line=node.lineno, scope=scope, callee=callee, node=node)
        self.code.calls.setdefault(callee, []).append(passed)
        self.code.calls_in.setdefault((self.path, scope), []).append(passed)

    def _store(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        is_plain = len(targets) == 1 and not isinstance(node, ast.AugAssign)
        value = node.value.id if is_plain and isinstance(node.value, ast.Name) else ""
        for it in (part for target in targets for part in ast.walk(target)):
            if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Store):
                owner = it.value.id if isinstance(it.value, ast.Name) else ""
                stored = Stored(path=self.path, scope=scope, owner=owner, value=value)
                self.code.stores.setdefault(it.attr, []).append(stored)


def _words(node: ast.AST) -> Iterator[str]:
    for it in ast.walk(node):
        match it:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
                yield word
            case ast.keyword(arg=str(word)):
                yield word


def last_name(node: ast.expr) -> str:
    """Return the last name of a dotted one, of `Box.__init__` the class; else empty."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in CONSTRUCTORS:
            return attr if name == "self" else name
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_self(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
