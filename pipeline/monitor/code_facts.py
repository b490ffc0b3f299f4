"""Tell what a piece of Python code uses: dotted names, texts, commands that it has others run."""

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.task.python_text import parse

WORD = re.compile(r"[A-Za-z_][\w.]*")
TEXT = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
RUNNERS = re.compile(
    r"os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*)|subprocess\.\w+|commands\.getoutput"
)
IMPORTERS = frozenset({"__import__", "importlib.import_module", "importlib.__import__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFacts:
    """What a piece of code uses.

    Example: `facts_of("import os; os.system('ls')").commands == ("ls",)`.
    """

    # Dotted names, with the modules that they are imported from: `zipfile.ZipFile`.
    names: frozenset[str]
    # String constants, docstrings and parts of f-strings included.
    texts: tuple[str, ...]
    # Shell texts that it runs, where they are constants.
    commands: tuple[str, ...]


def facts_of(code: str) -> CodeFacts:
    """Return the facts of some code; of what is no Python, as far as words tell."""
    tree = parse(code)
    if tree is None:
        texts = tuple(one or other for one, other in TEXT.findall(code))
        return CodeFacts(names=frozenset(WORD.findall(code)), texts=texts, commands=())
    aliases = aliases_of(tree)
    nodes = list(ast.walk(tree))
    names = {name for node in nodes if (name := dotted(node, aliases))}
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return CodeFacts(
        names=frozenset(names | set(aliases.values())),
        texts=tuple(_texts(nodes)),
        commands=tuple(it for call in calls for it in _commands(call, aliases)),
    )


def aliases_of(tree: ast.AST) -> dict[str, str]:
    """Return what imported names stand for: `{"Z": "zipfile.ZipFile"}`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            found |= {it.asname or it.name: f"{start}.{it.name}" for it in node.names}
    return found


def dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """Return the dotted name that an expression spells; empty when it spells none.

    `getattr(os, "_exit")` and `__import__("os")._exit` spell `os._exit`. What hangs on another
    expression begins with a dot: `.f_back`.
    """
    match node:
        case ast.Name(id=name):
            return aliases.get(name, name)
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value, aliases)}.{attr}"
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attr)), *_]):
            return f"{dotted(value, aliases)}.{attr}"
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
            return name if dotted(func, aliases) in IMPORTERS else ""
    return ""


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode("latin-1")


def _commands(call: ast.Call, aliases: dict[str, str]) -> Iterator[str]:
    if not RUNNERS.fullmatch(dotted(call.func, aliases)) or not call.args:
        return
    first = call.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value
    elif isinstance(first, ast.List | ast.Tuple):
        words = (it.value if isinstance(it, ast.Constant) else "$x" for it in first.elts)
        yield shlex.join(str(word) for word in words).replace("'$x'", "$x")
