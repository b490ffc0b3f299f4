"""Parse Python modules and find definitions in them, with the standard library alone."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


# Trees of modules that are kept: the library's that is at work, and tests'.
NUM_SHARED = 24

# Python 3.11 counts the depth of all threads' parsing together and then raises a SystemError
# (cpython gh-106905), and `catch_warnings` changes the filters of all threads.
_TURN = Lock()


def parse(content: bytes | str) -> ast.Module | None:
    """Return the tree of a module, or None when this Python cannot read it."""
    try:
        return must_parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=NUM_SHARED)
def parse_shared(content: bytes | str) -> ast.Module | None:
    """Return the tree of a module as `parse` does, from memory: it must not be changed.

    The modules of one library are looked at again and again, and a large one takes a second.
    """
    return parse(content)


def must_parse(content: bytes | str) -> ast.Module:
    """Return the tree of a module; threads take turns.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: this Python cannot read it.
    """
    with one_compiler():
        return ast.parse(content)


@contextmanager
def one_compiler() -> Iterator[None]:
    """Let one thread at a time compile something, and warn of nothing."""
    with _TURN, warnings.catch_warnings():
        # Invalid escapes in other people's strings are none of our business.
        warnings.simplefilter("ignore")
        yield


def split_lines(content: bytes) -> list[bytes]:
    r"""Split after the line endings that the tokenizer knows, and keep them.

    >>> split_lines(b"a\x0cb\r\nc")
    [b'a\x0cb\r\n', b'c']
    """
    return LINE.findall(content)


def ending_of(line: bytes) -> bytes:
    """Return the line ending of a line."""
    return line[len(line.rstrip(b"\r\n")) :]


def bodies_of(tree: ast.Module, classes: Sequence[str]) -> list[list[ast.stmt]]:
    """Return the bodies of the classes with a qualified name; without one, the module's."""
    bodies = [tree.body]
    for name in classes:
        bodies = [
            node.body
            for body in bodies
            for node in body
            if isinstance(node, ast.ClassDef) and node.name == name
        ]
    return bodies


def first_line(node: ast.stmt) -> int:
    """Return the number of the line that a statement starts in, decorators included."""
    marks: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(mark.lineno for mark in marks)])


def last_line(node: ast.stmt) -> int:
    """Return the number of the line that a statement ends in."""
    return node.end_lineno or node.lineno
