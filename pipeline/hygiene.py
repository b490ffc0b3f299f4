"""Strip from a source tree what is neither source nor test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

# Version control, caches and environments: removed wherever they are.
ANYWHERE = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", ".jj",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
        ".tox", ".nox", ".eggs", ".venv", "node_modules",
    }
)  # fmt: skip
# Reports and metadata of builds: removed at the top alone, since tests keep such files as data.
AT_TOP = frozenset({"PKG-INFO", ".coverage", "htmlcov"})
# What tells the output of a build from a package that is called `build` or `dist`.
BUILD_OUTPUT = ("lib", "lib.*", "bdist.*", "temp.*")
DIST_OUTPUT = ("*.whl", "*.tar.gz", "*.zip", "*.egg")


def clean(tree: Path, *, project: str) -> None:
    """Remove version control, caches, environments and build output from a tree.

    A full copy of the code in any of them would give a deletion away.

    Args:
        tree: changed in place.
        project: name whose `*.egg-info` goes, wherever it is.
    """
    for parent, folders, files in os.walk(tree):
        is_top = Path(parent) == tree
        for name in folders + files:
            path = Path(parent, name)
            if _is_residue(path, is_top=is_top, project=project):
                _remove(path)
        folders[:] = [name for name in folders if Path(parent, name).is_dir()]


def kept_files(tree: Path, *, project: str) -> Iterator[Path]:
    """Yield the files that `clean` would leave in a tree, in the order of the disk."""

    def is_kept(path: Path) -> bool:
        return not _is_residue(path, is_top=path.parent == tree, project=project)

    for parent, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if is_kept(Path(parent, name))]
        yield from filter(is_kept, (Path(parent, name) for name in files))


def _is_residue(path: Path, *, is_top: bool, project: str) -> bool:
    name = path.name
    return (
        name in ANYWHERE
        or path.suffix in {".pyc", ".pyo"}
        or (path.suffix == ".egg-info" and (is_top or _is_named(path, project)))
        or (path / "pyvenv.cfg").is_file()
        or (is_top and (name in AT_TOP or name.startswith(".coverage.")))
        or (is_top and name == "build" and _holds(path, BUILD_OUTPUT))
        or (is_top and name == "dist" and _holds(path, DIST_OUTPUT))
    )


def _is_named(path: Path, project: str) -> bool:
    return canonicalize_name(path.stem) == canonicalize_name(project)


def _holds(folder: Path, patterns: tuple[str, ...]) -> bool:
    return not (folder / "__init__.py").exists() and any(
        any(folder.glob(pattern)) for pattern in patterns
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
