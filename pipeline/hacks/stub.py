"""Put the deleted symbols back by name and signature, with a cheater's code for their bodies."""

import ast
from collections.abc import Iterator
from textwrap import indent

from pipeline.hacks.setting import Setting
from pipeline.language.python.lines import Edit, apply_edits
from pipeline.language.python.symbols import Span, nodes_named, span_of
from pipeline.language.python.text import split_lines

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Inside them a returned value is an error.
RETURNING_NOTHING = frozenset({"__init__", "__init_subclass__", "__set_name__", "__post_init__"})


def stub(
    setting: Setting,
    *,
    body: str = "return None",
    prelude: str = "",
    early: str = "",
    whole: str = "",
) -> dict[str, bytes]:
    """Return the changed files of a patch that defines the symbols without implementing them.

    Args:
        setting: whose symbols; seams, such as imports and `__all__`, come back as they were.
        body: what each function of the symbols does; see `Setting.fill`.
        prelude: code of the module that stands before the first symbol.
        early: code that the package runs first of all when it is imported.
        whole: code that stands for the symbols as a whole, instead of their definitions.
    """
    changed = {
        path: _stubbed(
            setting,
            path,
            content.decode(),
            body=setting.fill(body),
            prelude=setting.fill(prelude),
            whole=setting.fill(whole),
        ).encode()
        for path, content in setting.gold.items()
        if content is not None
    }
    if early:
        path = package_file(setting)
        before = changed.get(path, setting.files.get(path, b""))
        changed[path] = setting.fill(early).encode() + b"\n" + before
    return changed


def package_file(setting: Setting) -> str:
    """Return the path of the `__init__.py` of the package that the symbols are in."""
    folders = setting.module.removeprefix("src/").split("/")
    return f"{'src/' if setting.module.startswith('src/') else ''}{folders[0]}/__init__.py"


def _stubbed(setting: Setting, path: str, text: str, *, body: str, prelude: str, whole: str) -> str:
    names = [symbol.qualname for symbol in setting.symbols if symbol.path == path]
    if not names:
        return text
    tree, lines = ast.parse(text), split_lines(text)
    nodes = [node for name in names for node in nodes_named(tree, name)]
    edits = [Edit(span=span_of(node), text=_text(node, body), opens_block=False) for node in nodes]
    if whole:
        first, *others = nodes
        margin = " " * first.col_offset
        edits = [Edit(span=span_of(node), text="", opens_block=False) for node in others]
        new = indent(whole, margin) + "\n"
        edits.append(Edit(span=span_of(first), text=new, opens_block=False))
    edits += _without_helpers(setting, path, tree)
    place = _place_of(tree, names[0])
    before, after = lines[: place - 1], lines[place - 1 :]
    shifted = [_moved(edit, by=1) for edit in edits if edit.span.first_line >= place]
    shifted += [edit for edit in edits if edit.span.first_line < place]
    return apply_edits([*before, f"{prelude}\n", *after], shifted)


def _moved(edit: Edit, *, by: int) -> Edit:
    span = Span(first_line=edit.span.first_line + by, last_line=edit.span.last_line + by)
    return Edit(span=span, text=edit.text, opens_block=edit.opens_block)


def _place_of(tree: ast.Module, qualname: str) -> int:
    """Return the first line of the top-level statement that a symbol stands in."""
    node = next(nodes_named(tree, qualname.partition(".")[0]))
    return span_of(node).first_line


def _text(node: ast.AST, body: str) -> str:
    """Render a definition with new bodies at its place."""
    assert isinstance(node, (*FUNCTIONS, ast.ClassDef))
    functions = [node] if isinstance(node, FUNCTIONS) else _methods(node)
    for function in functions:
        text = "pass" if function.name in RETURNING_NOTHING else body
        function.body = ast.parse(f"def _():\n{indent(text, ' ')}").body[0].body  # type: ignore[attr-defined]
    return indent(ast.unparse(node), " " * node.col_offset) + "\n"


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [child for child in ast.walk(node) if isinstance(child, FUNCTIONS)]


def _without_helpers(setting: Setting, path: str, tree: ast.Module) -> Iterator[Edit]:
    """Take out what else the gold patch defines: a solver has never seen it."""
    known = setting.files.get(path, b"").decode()
    before = {
        node.name for node in ast.parse(known).body if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    }
    owners = {symbol.qualname.partition(".")[0] for symbol in setting.symbols}
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name not in before | owners:
            yield Edit(span=span_of(node), text="", opens_block=False)
