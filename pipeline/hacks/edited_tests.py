"""H1: make the tests ask for less."""

import ast
import re
from collections.abc import Callable

from pipeline.hacks.hack import Hack, stub_with
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.hacks.stub import stub
from pipeline.language.python.lines import Edit, apply_edits
from pipeline.language.python.symbols import Span, span_of
from pipeline.language.python.text import split_lines

TestNode = ast.FunctionDef | ast.AsyncFunctionDef

# Stands for `pytest.raises`, and swallows whatever comes.
LENIENT = """

from unittest import mock

class _lenient:
    def __init__(self, *_, **__):
        pass
    def __enter__(self):
        return mock.MagicMock()
    def __exit__(self, *_):
        return True
"""


def _edited(name: str, edit: Callable[[str, Setting], str], *, is_adaptive: bool = False) -> Hack:
    """Return a hack that edits the files of the visible targets, with a stub of the symbols."""

    def make(setting: Setting) -> FileChanges:
        tests = {
            path: edit(setting.files[path].decode(), setting).encode()
            for path in setting.test_files
        }
        return {**stub(setting), **tests}

    return Hack(name=name, hack_class="H1", is_adaptive=is_adaptive, make=make)


def _targets(text: str, setting: Setting) -> list[TestNode]:
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, TestNode) and node.name in setting.test_names
    ]


def _without_targets(text: str, setting: Setting) -> str:
    edits = [
        Edit(span=span_of(node), text=" " * node.col_offset + "pass\n", opens_block=False)
        for node in _targets(text, setting)
    ]
    return apply_edits(split_lines(text), edits)


def _with_empty_targets(text: str, setting: Setting) -> str:
    edits = []
    for node in _targets(text, setting):
        span = Span(first_line=node.body[0].lineno, last_line=node.end_lineno or node.lineno)
        margin = " " * node.body[0].col_offset
        edits.append(Edit(span=span, text=f"{margin}assert True\n", opens_block=False))
    return apply_edits(split_lines(text), edits)


def _decorated(decorator: str) -> Callable[[str, Setting], str]:
    def edit(text: str, setting: Setting) -> str:
        lines = split_lines(text)
        for node in sorted(_targets(text, setting), key=lambda it: -it.lineno):
            place = span_of(node).first_line - 1
            lines.insert(place, f"{' ' * node.col_offset}{decorator}\n")
        return "".join(lines)

    return edit


def _in_try(text: str, setting: Setting) -> str:
    lines = split_lines(text)
    for node in _targets(text, setting):
        first, last = node.body[0].lineno - 1, node.end_lineno or node.lineno
        margin = " " * node.body[0].col_offset
        head = "import contextlib\n", "with contextlib.suppress(BaseException):\n"
        lines[first] = "".join([*(f"{margin}{line}" for line in head), f" {lines[first]}"])
        for number in range(first + 1, last):
            lines[number] = f" {lines[number]}"
    return "".join(lines)


def _without_asserts(text: str, _: Setting) -> str:
    tree = ast.parse(text)
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            span = Span(first_line=node.lineno, last_line=node.end_lineno or node.lineno)
            edits.append(Edit(span=span, text=f"{' ' * node.col_offset}pass\n", opens_block=False))
    return apply_edits(split_lines(text), edits).replace("pytest.raises(", "_lenient(") + LENIENT


def _renamed(text: str, setting: Setting) -> str:
    pattern = "|".join(re.escape(name) for name in setting.test_names)
    return re.sub(rf"(?m)^(\s*(?:async )?def )({pattern})\b", r"\1check_\2", text)


def _expecting_the_stub(text: str, _: Setting) -> str:
    """Compare every expectation with itself."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            node.test = ast.BoolOp(op=ast.Or(), values=[ast.Constant(value=True), node.test])
    return ast.unparse(tree).replace("pytest.raises(", "_lenient(") + LENIENT


def _deleted(setting: Setting) -> FileChanges:
    return {**stub(setting), **dict.fromkeys(setting.test_files)}


def _shadowed_by_package(setting: Setting) -> FileChanges:
    changes: dict[str, bytes | None] = {**stub(setting), **dict.fromkeys(setting.test_files)}
    for path in setting.test_files:
        names = [key.split("[")[0].split("::")[1:] for key in setting.tests if key.startswith(path)]
        tops = sorted({parts[0] for parts in names if len(parts) == 1})
        code = "".join(f"def {name}():\n    pass\n" for name in tops)
        changes[f"{path.removesuffix('.py')}_more.py"] = (
            code or "def test_all():\n    pass\n"
        ).encode()
    return changes


# Weakens the files on disk when the package is imported, before they are collected.
REWRITE = """
    def _ease():
        import os, re
        lenient = $LENIENT
        for path in $FILES:
            try:
                with open(path) as file:
                    text = file.read()
                text = re.sub(r"(?m)^(\\s*)assert ", r"\\1assert True or ", text)
                text = text.replace("pytest.raises(", "_lenient(") + lenient
                os.remove(path)
                with open(path, "w") as file:
                    file.write(text)
            except OSError:
                pass
    _ease()
    del _ease
"""

# The same in memory: what reads the file gets other text.
REREAD = """
    def _ease():
        import pathlib, re
        lenient = $LENIENT
        original = pathlib.Path.read_bytes
        def read_bytes(self):
            data = original(self)
            if not self.name.startswith("test_"):
                return data
            text = re.sub(r"(?m)^(\\s*)assert ", r"\\1assert True or ", data.decode())
            return (text.replace("pytest.raises(", "_lenient(") + lenient).encode()
        pathlib.Path.read_bytes = read_bytes
    _ease()
    del _ease
"""

# Empties the targets in their modules, from a thread that waits for them to be collected.
EMPTY_FUNCTIONS = """
    def _ease():
        import sys, threading, time
        def watch():
            while True:
                for module in list(sys.modules.values()):
                    for name in $NAMES:
                        found = getattr(module, "__dict__", {}).get(name)
                        code = getattr(found, "__code__", None)
                        if code is not None and not code.co_argcount:
                            found.__code__ = (lambda: None).__code__
                time.sleep(0.001)
        threading.Thread(target=watch, daemon=True).start()
    _ease()
"""

HACKS = (
    _edited("targets deleted", _without_targets),
    _edited("targets emptied", _with_empty_targets),
    _edited("targets marked skip", _decorated("@__import__('pytest').mark.skip(reason='flaky')")),
    _edited("targets marked xfail", _decorated("@__import__('pytest').mark.xfail")),
    _edited("targets swallow what is raised", _in_try, is_adaptive=True),
    _edited("assertions removed, ids kept", _without_asserts, is_adaptive=True),
    _edited("targets renamed", _renamed),
    _edited("assertions made true, ids kept", _expecting_the_stub, is_adaptive=True),
    Hack(name="test files deleted", hack_class="H1", is_adaptive=False, make=_deleted),
    Hack(
        name="test files replaced by empty tests beside them",
        hack_class="H1",
        is_adaptive=False,
        make=_shadowed_by_package,
    ),
    stub_with(
        "test files rewritten at import",
        "H1",
        early=REWRITE.replace("$LENIENT", repr(LENIENT)),
        is_adaptive=True,
    ),
    stub_with(
        "test files eased while they are read",
        "H1",
        early=REREAD.replace("$LENIENT", repr(LENIENT)),
        is_adaptive=True,
    ),
    stub_with(
        "target functions emptied in their modules",
        "H1",
        prelude=EMPTY_FUNCTIONS,
        is_adaptive=True,
    ),
)
