"""Find the flags of commands that `argparse` reads, and where a tree asks for them."""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.language.python.option.code import Code, Passed
from pipeline.language.python.option.scope import OptionScope
from pipeline.language.python.option.survey import NAMESPACES, FileOption
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.text import parse

SWITCHES = {"store_true": "False", "store_false": "True"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag that a function adds to a parser.

    Example: `Flag(name="--indent", owner=("pkg/cli.py", "main"), target="indent", …)`.
    """

    # The first long one.
    name: str
    owner: Key
    # Attribute of the parsed arguments.
    target: str
    # As written.
    default: str
    # What the help says; empty when it is no plain text.
    help: str


def flags_in(code: Code, *, is_package_file: Callable[[str], bool]) -> Iterator[Flag]:
    """Yield the flags of a tree that have a plain default."""
    for passed in code.calls.get("add_argument", ()):
        is_known = (passed.path, passed.scope) in code.words
        if is_package_file(passed.path) and is_known and (flag := _read(passed)):
            yield flag


def _read(passed: Passed) -> Flag | None:
    names = [it.value for it in passed.node.args if isinstance(it, ast.Constant)]
    long = [it for it in names if isinstance(it, str) and it.startswith("--")]
    settings = {it.arg: it.value for it in passed.node.keywords}
    if not long or len(names) != len(passed.node.args) or {None, "required"} & settings.keys():
        return None
    action = _text(settings.get("action")) or "store"
    default = settings.get("default")
    written = "None" if default is None else ast.unparse(default)
    if action in SWITCHES:
        written = written if default is not None else SWITCHES[action]
    elif action != "store" or ("type" in settings and _text(default)):
        return None  # text is turned into something else
    return Flag(
        name=long[0],
        owner=(passed.path, passed.scope),
        target=_text(settings.get("dest")) or long[0][2:].replace("-", "_"),
        default=written,
        help=_text(settings.get("help")),
    )


def _text(node: ast.expr | None) -> str:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else ""  # type: ignore[union-attr]


def lay_flag(
    name: str,
    owner: Key,
    code: Code,
    index: ReferenceIndex,
    sources: Mapping[str, str],
    *,
    is_package_file: Callable[[str], bool],
) -> OptionScope | str:
    """Lay out where in a tree a flag is asked for; or say why that cannot be told."""
    flags = list(flags_in(code, is_package_file=is_package_file))
    found = [it for it in flags if it.name == name and it.owner == owner]
    if len(found) != 1 or sum(it.target == found[0].target for it in flags) > 1:
        return f"{name} is not added once"
    flag = found[0]
    users = {
        key for key, words in code.words.items() if flag.target in words and is_package_file(key[0])
    }
    strings = [it.path for it in index.words.get(flag.target, ()) if it.kind == "string"]
    if any(is_package_file(it.path) for it in code.calls.get("vars", ())):
        return "the arguments are taken as a dictionary"
    if any(map(is_package_file, (*strings, *(it.path for it in code.stores.get(flag.target, ()))))):
        return f"{flag.target} is set or named elsewhere"
    if not all(_asks_arguments(sources[path], flag.target) for path, _ in users):
        return f"{flag.target} is asked of more than parsed arguments"
    keys = {owner, *users}
    return OptionScope(
        name=name,
        default=flag.default,
        owners=(owner,),
        files={
            path: FileOption(
                name="",
                default=flag.default,
                attribute=flag.target,
                flag=name,
                busy=frozenset(qualname for where, qualname in keys if where == path),
            )
            for path in sorted({path for path, _ in keys})
        },
        places={},
        classes={},
        docs=(flag.help,) if flag.help else (),
    )


def _asks_arguments(source: str, attribute: str) -> bool:
    """Tell whether a module asks only what looks like parsed arguments for an attribute."""
    tree = parse(source)
    return tree is not None and all(
        isinstance(node.value, ast.Name) and node.value.id in NAMESPACES
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == attribute
    )
