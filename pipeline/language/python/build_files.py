"""Find what a project's build files name: entry points, packages, where the version stands."""

import ast
import configparser
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from pipeline.language.python.file_cut import FileCut
from pipeline.language.python.layout import lay_out, module_name
from pipeline.language.python.text import parse

# Tables of pyproject.toml that build and installation read.
_TABLES = (
    *(("project", name) for name in ("scripts", "gui-scripts", "entry-points")),
    *(("tool", name) for name in ("flit", "hatch", "pdm", "poetry", "setuptools")),
)


def find_packaged(
    files: Mapping[str, bytes], cuts: Iterable[FileCut], *, import_roots: Iterable[str]
) -> str:
    """Return what a build file needs of that which goes, and where it says so; else empty.

    Such files are protected: nobody who solves a task may edit them, so the entry cannot go along.
    """
    layout = lay_out((it for it in files if it.endswith(".py")), import_roots=import_roots)
    names: set[str] = set()
    paths: set[str] = set()
    for file in cuts:
        module = module_name(layout, file.path)
        names.update(f"{module}.{name}" for name in (*file.symbols, *file.constants))
        if file.is_removed:
            names.add(module)
            paths |= {file.path, file.path.removesuffix("/__init__.py")}
    return find_named(files, names=names, paths=paths)


def find_named(
    files: Mapping[str, bytes], *, names: Collection[str], paths: Collection[str]
) -> str:
    r"""Return what a build file says of a name or path, and which; else empty.

    Args:
        files: of the tree.
        names: dotted, as they could be imported.
        paths: of files and folders.

    >>> find_named(
    ...     {"setup.cfg": b"[options.entry_points]\nx =\n  y = a.cli:main"},
    ...     names={"a.cli.main"},
    ...     paths=(),
    ... )
    'a.cli:main in setup.cfg'
    """
    for path, read in (("pyproject.toml", _toml), ("setup.cfg", _ini), ("setup.py", _code)):
        for text in read(files.get(path, b"").decode(errors="replace")):
            # `flask = flask.cli:main [extra]`, `attr: flask.__version__`
            value = text.rpartition("=")[2].partition("[")[0].replace("attr:", "").strip()
            if value.strip("./") in paths or _is_named(value.replace(":", "."), names):
                return f"{value} in {path}"
    return ""


def _is_named(dotted: str, names: Collection[str]) -> bool:
    parts = dotted.split(".")
    return any(".".join(parts[:size]) in names for size in range(1, len(parts) + 1))


def _toml(text: str) -> Iterator[str]:
    found: object = {}
    with suppress(tomllib.TOMLDecodeError):
        found = tomllib.loads(text)
    for table, name in _TABLES:
        owner = found.get(table, {}) if isinstance(found, dict) else {}
        yield from _strings(owner.get(name) if isinstance(owner, dict) else None)


def _strings(value: object) -> Iterator[str]:
    """Yield all strings of a value, keys of tables included."""
    if isinstance(value, str):
        yield value
    for part in (*value.keys(), *value.values()) if isinstance(value, dict) else ():
        yield from _strings(part)
    for part in value if isinstance(value, list) else ():
        yield from _strings(part)


def _ini(text: str) -> Iterator[str]:
    sections = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):
        sections.read_string(text)
    for section in sections.sections():
        if section == "metadata" or section.startswith("options"):
            for key, value in sections.items(section):
                yield key
                yield from value.splitlines()


def _code(text: str) -> Iterator[str]:
    for node in ast.walk(parse(text) or ast.Module(body=[], type_ignores=[])):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.splitlines()
