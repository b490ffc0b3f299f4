"""Read what a project's own build files say literally: pyproject.toml, setup.cfg, setup.py."""

import ast
import configparser
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipeline.task.python_text import must_parse

Extras = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """What build files say without being run; empty where they compute it.

    Example: `Static(name="toolz", requires=(), extras=(("test", ("pytest",)),))`.
    """

    name: str = ""
    version: str = ""
    # Requirement strings without extras.
    requires: tuple[str, ...] = ()
    # (extra as spelled, requirement strings).
    extras: Extras = ()
    # Content for an `entry_points.txt`.
    entry_points: str = ""


def read_static(tree: Path) -> Static:
    """Take each field from the first build file that states it."""
    found = (_from_pyproject(tree), _from_setup_cfg(tree), _from_setup_py(tree))
    values: dict[str, Any] = {}
    for field in fields(Static):
        stated = (getattr(static, field.name) for static in found)
        values[field.name] = next(filter(None, stated), field.default)
    return Static(**values)


def load_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, empty when there is none that parses."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return {}


def load_ini(path: Path) -> configparser.ConfigParser:
    """Return the sections of an INI file, empty when there is none that parses."""
    try:
        return parse_ini(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return parse_ini("")


def parse_ini(text: str) -> configparser.ConfigParser:
    """Return the sections of an INI text, empty when it does not parse."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        parser.clear()
    return parser


def table(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a nested table, empty when it is missing or no table."""
    for key in keys:
        inner = data.get(key)
        data = inner if isinstance(inner, dict) else {}
    return dict(data)


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of a list, of the lines of a string, or nothing."""
    if isinstance(value, str):
        lines = (line.partition(" #")[0].strip() for line in value.splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))
    if isinstance(value, list | tuple):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def _from_pyproject(tree: Path) -> Static:
    data = load_toml(tree / "pyproject.toml")
    project, poetry = table(data, "project"), table(data, "tool", "poetry")
    groups = {
        "console_scripts": table(poetry, "scripts") | table(project, "scripts"),
        "gui_scripts": table(project, "gui-scripts"),
        **table(poetry, "plugins"),
        **table(project, "entry-points"),
    }
    return Static(
        name=_text(project.get("name")) or _text(poetry.get("name")),
        version=_text(project.get("version")) or _text(poetry.get("version")),
        requires=strings(project.get("dependencies")),
        extras=_extras(table(project, "optional-dependencies")),
        entry_points=_render(groups),
    )


def _from_setup_cfg(tree: Path) -> Static:
    ini = load_ini(tree / "setup.cfg")
    version = ini.get("metadata", "version", fallback="")
    extras = ini["options.extras_require"] if ini.has_section("options.extras_require") else {}
    scripts = ini["options.entry_points"] if ini.has_section("options.entry_points") else {}
    return Static(
        name=ini.get("metadata", "name", fallback=""),
        version="" if version.startswith(("attr:", "file:")) else version,
        requires=strings(ini.get("options", "install_requires", fallback="")),
        extras=_extras(extras),
        entry_points=_render(scripts),
    )


def _from_setup_py(tree: Path) -> Static:
    """Evaluate the literal arguments of `setup(...)`; the file is never executed."""
    try:
        module = must_parse((tree / "setup.py").read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError, ValueError, SyntaxError):
        return Static()
    constants: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            constants[statement.targets[0].id] = _literal(statement.value, constants)
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call) and _is_setup(node))
    call = next(calls, ast.Call(func=ast.Name(id="setup"), args=[], keywords=[]))
    given = {word.arg: _literal(word.value, constants) for word in call.keywords if word.arg}
    return Static(
        name=_text(given.get("name")),
        version=_text(given.get("version")),
        requires=strings(given.get("install_requires")),
        extras=_extras(table(given, "extras_require")),
        entry_points=_render(table(given, "entry_points")),
    )


def _is_setup(call: ast.Call) -> bool:
    return ast.unparse(call.func) in {"setup", "setuptools.setup"}


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> object:
    """Return a literal's value, a known constant's, or None for what only a run can tell."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _extras(groups: Mapping[str, object]) -> Extras:
    return tuple((name, strings(requirements)) for name, requirements in groups.items())


def _render(groups: Mapping[str, object]) -> str:
    """Write entry points, given as tables or as `name = value` lines, in the installed format."""
    text = ""
    for group, entries in groups.items():
        named = entries.items() if isinstance(entries, dict) else ()
        lines = [f"{name} = {value}" for name, value in named if isinstance(value, str)]
        lines += strings(entries)
        if lines:
            text += "\n".join([f"[{group}]", *lines, "", ""])
    return text


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
