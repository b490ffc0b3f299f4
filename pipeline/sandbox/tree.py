"""Walk folders that untrusted code has filled: never recursing, never following a link."""

import contextlib
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path

# What even an empty file costs.
_ENTRY_BYTES = 2**10
# A running job may take away what is being walked.
_GONE = (FileNotFoundError, NotADirectoryError)


def adopt(folder: Path, *, owner: int | None) -> None:
    """Make a folder and all in it readable and writable by its owner, and change who that is.

    Raises:
        OSError: it may not be changed, or is nested deeper than a path can tell.
    """
    _adopt(str(folder), folder.lstat(), owner)
    for entry in entries(folder):
        _adopt(entry.path, entry.stat(follow_symlinks=False), owner)


def _adopt(path: str, found: os.stat_result, owner: int | None) -> None:
    """Adopt one entry, whatever set-user-ID bits it had."""
    if owner is not None and (found.st_uid, found.st_gid) != (owner, owner):
        os.lchown(path, owner, owner)
    is_folder = stat.S_ISDIR(found.st_mode)
    if is_folder or stat.S_ISREG(found.st_mode):
        may_enter = is_folder or found.st_mode & 0o111
        needed = 0o700 if may_enter else 0o600
        mode = stat.S_IMODE(found.st_mode) & 0o1777 | needed
        if mode != stat.S_IMODE(found.st_mode):
            Path(path).chmod(mode)


def sizes(folder: Path) -> Iterator[float]:
    """Yield the bytes on disk of everything below a folder, one by one.

    What cannot be looked into counts as infinite, lest it be a hiding place.
    """
    try:
        for entry in entries(folder):
            with contextlib.suppress(FileNotFoundError):
                yield _ENTRY_BYTES + entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:
        yield math.inf


def entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Yield everything below a folder, each folder before what is in it.

    What vanishes meanwhile is left out.

    Raises:
        OSError: a folder is closed to us, or nested deeper than a path can tell.
    """
    waiting = [str(folder)]
    while waiting:
        for entry in _scan(waiting.pop()):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _scan(folder: str) -> Iterator["os.DirEntry[str]"]:
    with contextlib.suppress(*_GONE), os.scandir(folder) as found:
        yield from found
