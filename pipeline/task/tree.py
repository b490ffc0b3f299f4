"""Lay out source trees as folders, and read back what changed in them."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path, PurePosixPath

from pipeline.sandbox.protocol import Sandbox

# What a run of the tests leaves behind; never part of a patch.
LEFTOVERS = frozenset({
    "__pycache__",
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".git",
})

# What file systems take, in bytes, with room for the folder that the tree is laid out in.
MAX_NAME, MAX_PATH = 255, 2000
# Parts of a path: the standard library removes a folder by recursion.
MAX_DEPTH = 100

Changes = Mapping[str, bytes | None]


@contextmanager
def changed_tree(
    base: Path, changes: Changes, *, scratch: Path, sandbox: Sandbox
) -> Iterator[Path]:
    """Give `base` with some files replaced (None: removed), for the time of a block.

    Unchanged files are hard links: the folder is for read-only and overlay mounts.
    """
    folder = _fresh(scratch)
    try:
        shutil.copytree(base, folder, symlinks=True, copy_function=_link, dirs_exist_ok=True)
        replace_files(folder, changes, sandbox=sandbox)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_files(folder: Path, changes: Changes, *, sandbox: Sandbox) -> None:
    """Make changes in a folder that jobs use."""
    for path, content in changes.items():
        _replace(folder / path, content)
    sandbox.adopt(folder)


def restore_files(folder: Path, paths: Iterable[str], *, base: Path) -> None:
    """Undo changes in a folder of `changed_tree`: what `base` has is a hard link again."""
    for path in paths:
        (folder / path).unlink(missing_ok=True)
        if (base / path).exists():
            _link(str(base / path), str(folder / path))


@contextmanager
def pruned_bytecode(
    base: Path, changed: Iterable[str], *, scratch: Path, sandbox: Sandbox
) -> Iterator[Path]:
    """Give a tree's bytecode without that of some files, for the time of a block.

    The bytecode of a deleted function gives it away to code that is graded. What else a suite left
    there, such as links to files of this machine, is not taken over.
    """
    folder = _fresh(scratch)
    try:
        shutil.copytree(base, folder, ignore=_no_bytecode, copy_function=_link, dirs_exist_ok=True)
        drop_bytecode(folder, changed)
        sandbox.adopt(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drop_bytecode(folder: Path, changed: Iterable[str]) -> list[str]:
    """Remove the bytecode of some modules; return the paths of what was removed."""
    # A module and its stub have the same bytecode.
    files = {
        file
        for module in (folder / path for path in changed)
        for file in module.parent.glob(f"{escape(module.stem)}.*")
    }
    for file in files:
        file.unlink()
    return sorted(file.relative_to(folder).as_posix() for file in files)


def bytecode_of(folder: Path, *, without: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files that `pruned_bytecode` would show."""
    gone = {(module.parent, module.stem) for module in map(PurePosixPath, without)}
    for file in sorted(folder.rglob("*.pyc")):
        path = PurePosixPath(file.relative_to(folder).as_posix())
        names = (path.name[:end] for end, letter in enumerate(path.name) if letter == ".")
        is_gone = any((path.parent, name) in gone for name in names)
        if not is_gone and stat.S_ISREG(file.lstat().st_mode):
            yield str(path), file.read_bytes()


def _no_bytecode(folder: str, names: list[str]) -> list[str]:
    """Return the names that are neither real folders nor regular files of bytecode."""
    files = [Path(folder, name) for name in names]
    kept = {
        file.name
        for file in files
        if stat.S_ISDIR(mode := file.lstat().st_mode)
        or (stat.S_ISREG(mode) and file.suffix == ".pyc")
    }
    return [name for name in names if name not in kept]


@contextmanager
def copied_tree(base: Path, *, scratch: Path, sandbox: Sandbox) -> Iterator[Path]:
    """Give a private copy of `base` for the time of a block: for write mounts."""
    folder = _fresh(scratch)
    try:
        shutil.copytree(base, folder, symlinks=True, dirs_exist_ok=True)
        sandbox.adopt(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fresh(scratch: Path) -> Path:
    scratch.mkdir(parents=True, exist_ok=True)
    for number in range(1_000_000):
        folder = scratch / f"tree-{os.getpid()}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise OSError(f"{scratch}: a million trees are laid out already")


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target, follow_symlinks=False)
    return target


def find_misfit(base: Path, changes: Changes) -> str:
    """Say why a folder cannot take the new files among some changes; empty when it can."""
    for path in (path for path, content in changes.items() if content is not None):
        if _is_too_long(path):
            return f"{path[:MAX_NAME]!r} is too long a path"
        if (base / path).is_dir() and not (base / path).is_symlink():
            return f"{path} is a folder"
        for folder in PurePosixPath(path).parents:
            if (base / folder).is_symlink():
                return f"{folder} is a symbolic link"
            stays = (base / folder).is_file() and str(folder) not in changes
            if stays or changes.get(str(folder)) is not None:
                return f"{folder} is a file"
    return ""


def _is_too_long(path: str) -> bool:
    parts = os.fsencode(path).split(b"/")
    num_bytes = sum(len(part) + 1 for part in parts)
    return num_bytes > MAX_PATH or len(parts) > MAX_DEPTH or max(map(len, parts)) > MAX_NAME


def _replace(file: Path, content: bytes | None) -> None:
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o644
    file.unlink(missing_ok=True)
    if content is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode)


def read_tree(folder: Path) -> dict[str, bytes]:
    """Read the regular files of a folder, leftovers of test runs aside, without following links."""
    files = {}
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFTOVERS)
        for name in sorted(names):
            file = Path(root, name)
            if stat.S_ISREG(file.lstat().st_mode) and not name.endswith(".pyc"):
                files[file.relative_to(folder).as_posix()] = file.read_bytes()
    return files


def changes_between(
    before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> dict[str, bytes | None]:
    """Return what turns `before` into `after`: new content by path, None for a removed file."""
    paths = sorted(before.keys() | after.keys())
    return {path: after.get(path) for path in paths if before.get(path) != after.get(path)}


def apply_changes(files: Mapping[str, bytes], changes: Changes) -> dict[str, bytes]:
    """Return the files with the changes made."""
    merged = {**files, **changes}
    return {path: content for path, content in merged.items() if content is not None}
