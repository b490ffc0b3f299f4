"""Find functions in a text by what they do, whatever their local names and formatting."""

import ast
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from pipeline.leaks.python_prints import outline_key, shape_key
from pipeline.task.python_text import FunctionNode, parse

# A longer function is cut off, and does not parse then.
MAX_BYTES = 2**16
MAX_FUNCTIONS = 2000

# It begins with letters, so that they alone are searched for; what is before is looked at then.
_DEFINED = re.compile(rb"def[ \t]+(\w+)")
_BEFORE = re.compile(rb"([ \t]*)(?:async[ \t]+)?")


# By the name of a function, for each that is looked for, the words that its copies have too.
Wanted = Mapping[bytes, Sequence[tuple[bytes, ...]]]


def shapes_in(
    text: bytes, wanted: Wanted, *, outlines: Collection[int] | None = None
) -> Iterator[int]:
    """Yield the keys of the functions that a text defines, of those that are wanted.

    Others of their names may be among them; those whose outlines are not wanted are left out, and
    None wants all.

    Each is parsed alone, so the text may be a piece of a module, or hold something else too.
    """
    for block, indent in islice(_blocks(text, wanted), MAX_FUNCTIONS):
        for node in _functions(block, indent=indent):
            if outlines is None or outline_key(node) in outlines:
                yield from _shape(node)


def _shape(node: FunctionNode) -> Iterator[int]:
    # An expression may be nested deeper than Python calls.
    with suppress(RecursionError):
        yield shape_key(node)


def _blocks(text: bytes, wanted: Wanted) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of what may be one of the functions, and what indents it."""
    for name, start, indent in _definitions(text, wanted):
        block = _block(text, start, indent=indent)
        # Most are others of its name, and to parse is slow.
        if any(all(word in block for word in words) for words in wanted[name]):
            yield block, indent


def _definitions(text: bytes, names: Container[bytes]) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield functions of some names: the name, where its line begins, and what indents it."""
    for match in _DEFINED.finditer(text):
        if match[1] in names:
            start = text.rfind(b"\n", 0, match.start()) + 1
            before = _BEFORE.fullmatch(text, start, match.start())
            if before:
                yield match[1], start, before[1]


def _block(text: bytes, start: int, *, indent: bytes) -> bytes:
    """Return the lines from one on that are indented more; a bracket may close at its depth."""
    end = _end_after(indent).search(text, start + len(indent) + 1, start + MAX_BYTES)
    return text[start : end.start() if end else start + MAX_BYTES]


def _end_after(indent: bytes) -> re.Pattern[bytes]:
    depth = len(indent)
    less = rb"[ \t]{0,%d}[^\s#]" % (depth - 1) if depth else rb"(?!)"
    return re.compile(rb"^(?:%s|[ \t]{%d}[^\s)\]}#])" % (less, depth), re.MULTILINE)


def _functions(block: bytes, *, indent: bytes) -> Iterator[FunctionNode]:
    tree = parse(b"if 1:\n" + block if indent else block)
    for node in _statements(tree) if tree else ():
        if isinstance(node, FunctionNode):
            yield node


def _statements(tree: ast.AST) -> list[ast.AST]:
    """Return every statement, at any depth; no expression holds one."""
    found = [tree]
    for node in found:
        for name in _BLOCKS:
            found += getattr(node, name, ())
    return found


# Fields of nodes that hold statements, or what holds them in turn.
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
