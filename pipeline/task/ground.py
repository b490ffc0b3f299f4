"""Know the tree that a patch is for: which paths matter to the interpreter and to the runner."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.task.patch import is_protected

# Modules that pytest, its plugins or their dependencies import, installed or not.
TEST_STACK = frozenset({
    *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup"),
    *("tomli", "colorama", "hypothesis", "_hypothesis_pytestplugin", "attr", "attrs", "readline"),
    *("argcomplete", "xdist", "execnet", "coverage", "pytest_cov", "pytest_mock", "pytest_asyncio"),
    *("anyio", "trio", "twisted", "zope", "nose", "mock", "numpy", "pexpect", "setuptools", "pip"),
    *("pkg_resources", "_distutils_hack", "wheel", "apport_python_hook"),
})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a screen must know of the tree that a patch is for."""

    # Paths of the Snapshot, with the size of each file.
    sizes: Mapping[str, int]
    # Folders on `sys.path` while the suite runs; the tree itself is the empty string.
    path_folders: frozenset[str]
    # Top-level modules that a file in those folders would stand in for.
    taken: frozenset[str]
    # The `__init__.py` files that make test modules parts of packages.
    test_packages: frozenset[str]
    # Folders with an `__init__.py`.
    packages: frozenset[str]
    # Paths that the Deletion touched.
    deleted: frozenset[str]
    # Spelled as in file names: `toolz`.
    project: str


def survey(
    snapshot: Mapping[str, bytes],
    *,
    import_roots: Iterable[str],
    installed: Iterable[str],
    project: str,
    deleted: Iterable[str],
) -> Ground:
    """Gather what a screen must know.

    Args:
        snapshot: files of the untouched tree.
        import_roots: folders of the tree on `sys.path`.
        installed: names at the top of the environment's site-packages.
        project: name of the distribution under test.
        deleted: paths that the Deletion touched.
    """
    tests = [path for path in snapshot if path.endswith(".py") and is_protected(path)]
    packages = {path: _packages_above(path, snapshot) for path in tests}
    # As pytest's default import mode does: the folder above the topmost package of a test module.
    folders = {_folder(packages[path][-1] if packages[path] else path) for path in tests}
    roots = {root.strip("/.") for root in import_roots}
    helpers = {
        PurePosixPath(path).stem
        for path in tests
        if _folder(path) in folders and not is_protected(path.rpartition("/")[2])
    }
    names = {PurePosixPath(name).name.partition(".")[0] for name in installed}
    return Ground(
        sizes={path: len(content) for path, content in snapshot.items()},
        path_folders=frozenset({"", *roots, *folders}),
        taken=frozenset(sys.stdlib_module_names | TEST_STACK | names | helpers),
        test_packages=frozenset(
            f"{folder}/__init__.py" for found in packages.values() for folder in found
        ),
        packages=frozenset(_folder(it) for it in snapshot if it.endswith("/__init__.py")),
        deleted=frozenset(deleted),
        project=spelled(project),
    )


def _packages_above(path: str, snapshot: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the packages that a module is in, the innermost first."""
    folders = []
    folder = _folder(path)
    while folder and f"{folder}/__init__.py" in snapshot:
        folders.append(folder)
        folder = _folder(folder)
    return tuple(folders)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def spelled(project: str) -> str:
    """Return the name of a project as it stands in file names."""
    return re.sub(r"[-_.]+", "_", project).lower()
