"""Show a solver the ablated source with the Snapshot's tests, but for those kept hidden."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pipeline.task.canonical import content_id
from pipeline.task.patch import apply_patch, is_protected
from pipeline.task.python_text import (
    FunctionNode,
    bodies_of,
    ending_of,
    first_line,
    last_line,
    parse_shared,
    split_lines,
)
from pipeline.task.record import Deletion, Grading, Task
from pipeline.task.shorten import shorten
from pipeline.task.tree import apply_changes

# With fewer test functions none is hidden; else one in this many, at least one.
MIN_FUNCTIONS = 2
SHOWN_TO_HIDDEN = 4


def solve_tree(task: Task, snapshot: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that a solver starts from; patches are diffs against them."""
    tree = restore_tests(snapshot, ablated_tree(task.deletion, snapshot))
    return hide_tests(tree, task.grading)


def ablated_tree(deletion: Deletion, snapshot: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the Snapshot's files without the Feature."""
    return apply_changes(snapshot, apply_patch(snapshot, deletion.patch))


def restore_tests(snapshot: Mapping[str, bytes], work: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a tree with tests and their configuration of the Snapshot, and the rest of `work`."""
    tests = {path: content for path, content in snapshot.items() if is_protected(path)}
    return tests | {path: content for path, content in work.items() if not is_protected(path)}


def hide_tests(tree: Mapping[str, bytes], grading: Grading) -> dict[str, bytes]:
    """Return a tree without the tests that a solver is not shown."""
    shown = shorten_tests(tree, grading.shortened)
    functions = dict.fromkeys(map(function_of, grading.hidden))
    gone = [name for name in functions if name not in grading.shortened]
    for path in dict.fromkeys(name.split("::")[0] for name in gone):
        names = [name.split("::")[1:] for name in gone if name.split("::")[0] == path]
        shown[path] = _without(shown[path], names)
    return shown


def shorten_tests(tree: Mapping[str, bytes], functions: Iterable[str]) -> dict[str, bytes]:
    """Return a tree with some test functions cut short, which can be."""
    shown = dict(tree)
    for path, *names in (function.split("::") for function in functions):
        shorter = shorten(shown[path], names)
        assert shorter is not None, (path, names)
        shown[path] = shorter
    return shown


def choose_shortened(
    targets: Sequence[str], snapshot: Mapping[str, bytes], *, seed: int, task_id: str
) -> tuple[str, ...]:
    """Choose the test functions to show the first half of, where none can be hidden whole.

    One in four functions is drawn, at least one; only functions that can be cut.
    """
    functions = list(dict.fromkeys(map(function_of, targets)))
    drawn = sorted(functions, key=lambda name: content_id(seed, task_id, name))
    cuttable = (name for name in drawn if _is_cuttable(name, snapshot))
    return tuple(islice(cuttable, max(1, len(functions) // SHOWN_TO_HIDDEN)))


def _is_cuttable(function: str, snapshot: Mapping[str, bytes]) -> bool:
    path, *names = function.split("::")
    is_module = path in snapshot and path.endswith(".py") and bool(is_protected(path))
    return is_module and bool(names) and shorten(snapshot[path], names) is not None


def choose_hidden(
    targets: Sequence[str], snapshot: Mapping[str, bytes], *, seed: int, task_id: str
) -> tuple[str, ...]:
    """Choose target tests that a solver is not shown, all ids of a function together.

    One in four functions is drawn, at least one of two or more; only functions that can be taken
    out of their modules without a trace.
    """
    functions = list(dict.fromkeys(map(function_of, targets)))
    if len(functions) < MIN_FUNCTIONS:
        return ()
    drawn = sorted(functions, key=lambda name: content_id(seed, task_id, name))
    removable = (name for name in drawn if is_removable(name, snapshot))
    chosen = set(islice(removable, max(1, len(functions) // SHOWN_TO_HIDDEN)))
    return tuple(key for key in targets if function_of(key) in chosen)


def function_of(test_id: str) -> str:
    """Return a test id without its parameters: `tests/test_a.py::TestB::test_c`."""
    return test_id.partition("[")[0].partition(" #")[0]


def is_removable(function: str, snapshot: Mapping[str, bytes]) -> bool:
    """Tell whether a test function stands alone: defined once, used by nothing else."""
    path, *names = function.split("::")
    if not names or not is_protected(path) or path not in snapshot:
        return False
    tree = parse_shared(snapshot[path])
    if tree is None or len(_find(tree, names)) != 1:
        return False
    # A class that another one builds on passes its tests on; so does a module that is imported.
    return not any(_is_used(name, snapshot[path]) for name in names) and not any(
        _is_imported(names[0], snapshot[other])
        for other in snapshot
        if other != path and other.endswith(".py") and is_protected(other)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A function and the body that it stands in."""

    node: FunctionNode
    body: list[ast.stmt]
    # The body is a module's, which may be empty.
    is_module: bool


def _find(tree: ast.Module, names: Sequence[str]) -> list[_Found]:
    """Return the definitions of a function, by the names of its classes and its own."""
    return [
        _Found(node=node, body=body, is_module=body is tree.body)
        for body in bodies_of(tree, names[:-1])
        for node in body
        if isinstance(node, FunctionNode) and node.name == names[-1]
    ]


def _is_used(name: str, content: bytes) -> bool:
    """Tell whether a module mentions a name besides defining it."""
    words = re.findall(rb"\b%s\b" % re.escape(name.encode()), content)
    if name.isascii() and len(words) == 1:
        return False
    mentions = _mentions(content)
    assert mentions is not None, name
    return name in mentions.names or name in mentions.attributes or name in mentions.texts


def _is_imported(name: str, content: bytes) -> bool:
    if name.encode() not in content:
        return False
    mentions = _mentions(content)
    return (
        mentions is None
        or not mentions.imported.isdisjoint({name, "*"})
        or name in mentions.attributes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mentions:
    """Everything that a module names."""

    names: frozenset[str]
    attributes: frozenset[str]
    # Constants that could be names.
    texts: frozenset[str]
    # By `from … import`.
    imported: frozenset[str]


@lru_cache(maxsize=1024)
def _mentions(content: bytes) -> _Mentions | None:
    """Return what a module names; None when this Python cannot read it."""
    tree = parse_shared(content)
    if tree is None:
        return None
    nodes = list(ast.walk(tree))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return _Mentions(
        names=frozenset(node.id for node in nodes if isinstance(node, ast.Name)),
        attributes=frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        texts=frozenset(it for it in constants if isinstance(it, str) and it.isidentifier()),
        imported=frozenset(alias.name for node in imports for alias in node.names),
    )


def _without(content: bytes, functions: Sequence[Sequence[str]]) -> bytes:
    """Cut functions out of a module, decorators included; every other byte stays."""
    tree = parse_shared(content)
    assert tree is not None, functions
    found = [found for names in functions for found in _find(tree, names)]
    gone = {id(it.node) for it in found}
    lines = split_lines(content)
    left = dict(enumerate(lines, 1)) | dict(_replacements(found, gone, lines))
    return b"".join(left.values())


def _replacements(
    found: Sequence[_Found], gone: set[int], lines: Sequence[bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield the new text of each line that goes, by its number from 1."""
    for it in found:
        first = first_line(it.node)
        for number in range(first, last_line(it.node) + 1):
            yield number, b""
        if not it.is_module and all(id(node) in gone for node in it.body):
            indent = lines[it.node.lineno - 1][: it.node.col_offset]
            yield first, indent + b"pass" + ending_of(lines[first - 1])
