"""Translate between files of a tree and the module names that import statements use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_SUFFIXES = (".py", "/__init__.py", ".pyi", "/__init__.pyi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which file each module name stands for.

    Example: `Layout(paths=frozenset({"src/a/b.py"}), import_roots=("src",), by_name={"a.b": …})`.
    """

    paths: frozenset[str]
    # Every folder that holds one of the paths.
    folders: frozenset[str]
    # Folders on `sys.path`, longest first.
    import_roots: tuple[str, ...]
    # Dotted name -> path.
    by_name: Mapping[str, str]


def lay_out(paths: Iterable[str], *, import_roots: Iterable[str] = ()) -> Layout:
    """Name all modules: below the import roots, the topmost package folder, and the tree."""
    known = frozenset(paths)
    roots = tuple(sorted({root.strip("/.") for root in import_roots}, key=len, reverse=True))
    folders = frozenset(str(folder) for path in known for folder in PurePosixPath(path).parents)
    layout = Layout(paths=known, folders=folders, import_roots=roots, by_name={})
    by_name: dict[str, str] = {}
    # A `.py` goes before its stub, a shallow file before a deep one of the same name.
    for path in sorted(known, key=lambda it: (it.endswith(".pyi"), it.count("/"), it)):
        by_name.setdefault(module_name(layout, path), path)
    for path in sorted(known):
        by_name.setdefault(_dotted(path), path)
    return Layout(paths=known, folders=folders, import_roots=roots, by_name=by_name)


def module_name(layout: Layout, path: str) -> str:
    """Return the dotted name that a file is imported by."""
    for root in layout.import_roots:
        if path.startswith(f"{root}/"):
            return _dotted(path.removeprefix(f"{root}/"))
    folder = PurePosixPath(path).parent
    while _is_package(layout, str(folder)):
        folder = folder.parent
    return _dotted(str(PurePosixPath(path).relative_to(folder)))


def find_module(layout: Layout, module: str, *, importer: str) -> str:
    """Return the file of a module as named in an import statement of another file.

    Leading dots are relative to the importer. A folder without `__init__.py` is answered with the
    path that file would have; a module outside the tree with an empty string.
    """
    name = module.lstrip(".")
    folder = PurePosixPath(importer).parent
    level = len(module) - len(name)
    if level:
        if level - 1 > len(folder.parts):
            return ""
        base = "/".join(folder.parts[: len(folder.parts) - level + 1])
        return _file(layout, "/".join(filter(None, (base, *name.split(".")))))
    if not _is_package(layout, str(folder)):
        # Scripts and tests outside packages import their neighbours.
        beside = _file(layout, str(folder / name.replace(".", "/")).removeprefix("./"))
        if beside:
            return beside
    return layout.by_name.get(name, "")


def find_submodule(layout: Layout, package: str, name: str) -> str:
    """Return the file of a module inside a package; empty when there is none."""
    stem = PurePosixPath(package).stem
    if stem != "__init__":
        return ""
    return _file(layout, f"{PurePosixPath(package).parent}/{name}".removeprefix("./"))


def _file(layout: Layout, stem: str) -> str:
    for suffix in _SUFFIXES:
        path = f"{stem}{suffix}".removeprefix("/")
        if path in layout.paths:
            return path
    return f"{stem}/__init__.py" if stem in layout.folders else ""


def _is_package(layout: Layout, folder: str) -> bool:
    return f"{folder}/__init__.py" in layout.paths or f"{folder}/__init__.pyi" in layout.paths


def _dotted(path: str) -> str:
    return path.rpartition(".")[0].replace("/", ".").removesuffix(".__init__")
