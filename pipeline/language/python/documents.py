"""Take out of documentation what would not build without deleted code: references to import it."""

import re
from collections.abc import Collection, Iterator, Sequence

# Sphinx: `.. autofunction:: toolz.countby`, with options and text below it at a deeper margin.
_AUTO = re.compile(
    r"\s*\.\. (?:py:)?auto(?:attribute|class|data|decorator|exception|function|method"
    r"|module|property)::\s+(?P<name>[\w.]+)"
)
# What names after it are relative to.
_MODULE = re.compile(r"\s*\.\. (?:py:)?(?:current)?module::\s+(?P<name>[\w.]+)")
_SUMMARY = re.compile(r"(?P<margin>\s*)\.\. autosummary::")
# mkdocstrings: `::: toolz.countby`.
_PLUGIN = re.compile(r"\s*:::\s+(?P<name>[\w.]+)")
# The source itself: `.. literalinclude:: ../src/toolz/recipes.py`.
_SOURCE = re.compile(r"\s*\.\. literalinclude::\s+(?P<path>\S+)\.py\s*")
_ENTRY = re.compile(r"\s+~?(?P<name>[\w.]+)\s*")


def cut_document(text: str, gone: Collection[str]) -> str:
    r"""Return a page without the directives that import something gone, and their options.

    Prose that only mentions it stays.

    Args:
        text: in reStructuredText or Markdown.
        gone: dotted names, as they could be imported.

    >>> cut_document(".. autofunction:: m.f\n   :no-index:\n\nText\n", {"m.f"})
    'Text\n'
    """
    lines = text.splitlines(keepends=True)
    dropped = {number for start, end in _blocks(lines, gone) for number in range(start, end)}
    return "".join(line for number, line in enumerate(lines) if number not in dropped)


def _blocks(lines: Sequence[str], gone: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each run that goes, and the first one after it."""
    module = ""
    for number, line in enumerate(lines):
        if match := _MODULE.match(line):
            module = match["name"]
        elif match := _SUMMARY.match(line):
            end = _end_of(lines, number, margin=len(match["margin"]))
            yield from _entries(lines, range(number + 1, end), module, gone)
        elif _imports_gone(line, module, gone):
            yield number, _end_of(lines, number, margin=_margin(line))


def _imports_gone(line: str, module: str, gone: Collection[str]) -> bool:
    """Tell whether a line opens a directive that needs something gone."""
    if match := _AUTO.match(line) or _PLUGIN.match(line):
        return _is_gone(match["name"], module, gone)
    if match := _SOURCE.fullmatch(line):
        parts = match["path"].removesuffix("/__init__").split("/")
        return any(".".join(parts[start:]) in gone for start in range(len(parts)))
    return False


def _entries(
    lines: Sequence[str], block: range, module: str, gone: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield the lines of a summary that name something gone."""
    for number in block:
        match = _ENTRY.fullmatch(lines[number])
        if match and _is_gone(match["name"], module, gone):
            yield number, number + 1


def _is_gone(name: str, module: str, gone: Collection[str]) -> bool:
    """Tell whether a name, alone or in the current module, is or belongs to something gone."""
    for full in (name, f"{module}.{name}" if module else name):
        parts = full.split(".")
        if any(".".join(parts[:size]) in gone for size in range(1, len(parts) + 1)):
            return True
    return False


def _end_of(lines: Sequence[str], start: int, *, margin: int) -> int:
    """Return where the block that a line opens ends, the blank lines below it included."""
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.strip() and _margin(line) <= margin:
            return number
    return len(lines)


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
