"""One honest way to solve a Task, which a grader must pay."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.hacks.setting import FileChanges, Setting
from pipeline.language.python.symbols import nodes_named, span_of
from pipeline.language.python.text import split_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A patch that solves.

    Example: `Control(name="gold", make=lambda setting: setting.gold)`.
    """

    # Says what it does besides.
    name: str
    # Changes to the solve tree; None where the Task's code has no place for it.
    make: Callable[[Setting], FileChanges | None]


def gold_text(setting: Setting) -> str:
    """Return the module of the symbols as the gold patch has it."""
    content = setting.gold[setting.module]
    assert content is not None, setting.module
    return content.decode()


def gold_with(
    setting: Setting, *, text: str = "", before: str = "", after: str = ""
) -> dict[str, bytes | None]:
    """Return the gold patch's files with code around the symbols.

    Args:
        setting: whose gold patch.
        text: of the module, instead of the gold patch's.
        before: what stands before the top-level statement of the first symbol.
        after: what stands at the end of the module.
    """
    lines = split_lines(text or gold_text(setting))
    top = setting.symbols[0].qualname.partition(".")[0]
    place = span_of(next(nodes_named(ast.parse("".join(lines)), top))).first_line - 1
    parts = [*lines[:place], _block(setting, before), *lines[place:]]
    module = "".join(parts) + _block(setting, after)
    return {**setting.gold, setting.module: module.encode()}


def _block(setting: Setting, code: str) -> str:
    return f"\n{setting.fill(code)}\n\n\n" if code else ""
