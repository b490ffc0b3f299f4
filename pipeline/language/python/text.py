"""Parse Python source text, whatever its line endings, byte order mark or warnings."""

import ast
import re

from pipeline.task import python_text

BYTE_ORDER_MARK = "\ufeff"

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def parse(source: str) -> ast.Module | None:
    """Return the tree of a module, which must not be changed; None when Python cannot read it."""
    return python_text.parse_shared(source.removeprefix(BYTE_ORDER_MARK))


def is_valid(source: str, *, path: str) -> bool:
    """Tell whether a module compiles; unlike `parse`, a stray `return` fails."""
    try:
        with python_text.one_compiler():
            compile(source.removeprefix(BYTE_ORDER_MARK), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def split_lines(source: str) -> list[str]:
    r"""Split after the line endings that the tokenizer knows, and keep them.

    Unlike `str.splitlines`, form feeds and other separators do not count.

    >>> split_lines("a\x0cb\r\nc")
    ['a\x0cb\r\n', 'c']
    """
    return _LINE.findall(source)


def column(line: str, *, offset: int) -> int:
    """Turn an offset of `ast`, in UTF-8 bytes, into an index of the line."""
    return len(line.encode()[:offset].decode())
