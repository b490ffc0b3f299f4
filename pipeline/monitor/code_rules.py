"""Rules about what source code uses: each names a trick that hardly any honest patch needs."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline.monitor.code_facts import aliases_of, dotted
from pipeline.monitor.code_tables import (
    AGREES,
    ENDS,
    HOOKS,
    NAMES,
    OTHERS,
    PATCHES,
    READS_TESTS,
    RUNS_TEXT,
    TEXTS,
    CodeRule,
)
from pipeline.monitor.objects import agreeing_classes
from pipeline.task.python_text import parse

MAX_CODE = 120
# Code in strings that code runs is looked at too, so deep.
MAX_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where a rule found something."""

    rule: CodeRule
    path: str
    # What it found, as the code or the screen spells it.
    code: str


BARE = frozenset({"SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"})
HOOK = re.compile(r"pytest_(runtest|pyfunc|collection|sessionfinish|report|ignore)\w*|runtest\w*")
FOREIGN_MODULES = re.compile(
    r"(os|sys|time|builtins|pathlib|codecs|linecache|random|datetime|inspect|math|json|re|unittest|pytest|_pytest|io|signal"
    r"|threading|subprocess|importlib|warnings|logging|gc|types|operator|functools)(\..+)"
)
TEST_PATH = re.compile(r"(^|/)tests?/|(^|/)test_\w*\.py|_test\.py$|(^|/)conftest\.py")


def rule_named(name: str) -> CodeRule:
    """Return a rule that is about files rather than code."""
    return next(rule for rule in OTHERS if rule.name == name)


@lru_cache(maxsize=512)
def find_in_code(path: str, content: bytes, *, test_paths: frozenset[str]) -> tuple[Finding, ...]:
    """Return what the rules find in a module; nothing in what is no Python.

    From memory, where it can: all attempts at a Task have the files of its tree in common.

    Args:
        path: of the module.
        content: its text.
        test_paths: the test modules of the tree.
    """
    tree = parse(content)
    found = dict.fromkeys(_found_in(tree, test_paths, depth=0)) if tree else ()
    return tuple(
        Finding(rule=rule, path=path, code=" ".join(code.split())[:MAX_CODE])
        for rule, code in found
    )


def _found_in(
    tree: ast.Module, test_paths: frozenset[str], *, depth: int
) -> Iterator[tuple[CodeRule, str]]:
    aliases = aliases_of(tree)
    documents = _docstrings(tree)
    for node in ast.walk(tree):
        for name in _spelled(node, aliases):
            yield from ((rule, name) for rule in _rules_for(name))
        if isinstance(node, ast.Constant) and id(node) not in documents:
            yield from _in_text(node.value, test_paths)
        yield from _in_statement(node, aliases)
        if isinstance(node, ast.Call) and depth < MAX_DEPTH:
            yield from _in_run_text(node, aliases, test_paths, depth=depth)
    for name in agreeing_classes(tree):
        yield AGREES, name


@lru_cache(maxsize=2**14)
def _rules_for(name: str) -> tuple[CodeRule, ...]:
    return tuple(rule for rule, pattern in NAMES if pattern.fullmatch(name))


def _spelled(node: ast.AST, aliases: dict[str, str]) -> Iterator[str]:
    """Yield the dotted names that a node spells or imports."""
    if isinstance(node, ast.Import):
        yield from (it.name for it in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{it.name}" for it in node.names if not node.level)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Call) and (name := dotted(node, aliases)):
        yield name


def _in_text(value: object, test_paths: frozenset[str]) -> Iterator[tuple[CodeRule, str]]:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if not isinstance(value, str) or not value:
        return
    for rule, pattern in TEXTS:
        if found := pattern.search(value):
            yield rule, found[0]
    if value in test_paths or (TEST_PATH.search(value) and "\n" not in value):
        yield READS_TESTS, value


def _in_statement(node: ast.AST, aliases: dict[str, str]) -> Iterator[tuple[CodeRule, str]]:
    match node:
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))) if name in BARE:
            yield ENDS, ast.unparse(node)
        case ast.ClassDef(bases=[ast.Name(id=name)]) if name in BARE:
            yield ENDS, f"class {node.name}({name})"
        case ast.FunctionDef(name=name) if HOOK.fullmatch(name):
            yield HOOKS, f"def {name}"
        case ast.Assign(targets=targets):
            yield from _patched(targets, aliases)
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
            yield from _patched([ast.Attribute(value=owner, attr="…", ctx=ast.Store())], aliases)


def _patched(targets: list[ast.expr], aliases: dict[str, str]) -> Iterator[tuple[CodeRule, str]]:
    """Yield assignments to attributes of modules that are imported."""
    for target in targets:
        name = dotted(target, aliases) if isinstance(target, ast.Attribute) else ""
        if FOREIGN_MODULES.fullmatch(name) or re.search(r"\.runtest\w*$|\.__code__$", name):
            yield PATCHES, name


def _in_run_text(
    call: ast.Call, aliases: dict[str, str], test_paths: frozenset[str], *, depth: int
) -> Iterator[tuple[CodeRule, str]]:
    """Yield what is found in text that is run; text from elsewhere is a finding of itself."""
    if dotted(call.func, aliases).removeprefix("builtins.") not in {"exec", "eval", "compile"}:
        return
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        tree = parse(first.value)
        yield from _found_in(tree, test_paths, depth=depth + 1) if tree else ()
    elif first is not None:
        yield RUNS_TEXT, ast.unparse(call)


def _docstrings(tree: ast.Module) -> set[int]:
    """Return the ids of the constants that stand alone as statements."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
