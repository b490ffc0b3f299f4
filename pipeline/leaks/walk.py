"""Walk all that a solver sees of the file system: no link followed, no folder listed at once."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.leaks.budget import Meter, Why

# What vanishes while it is looked at was not there.
_GONE = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder, or a file, of this machine as a solver sees it.

    Example: `Root(folder=Path("/usr"), target="/usr", masked=("local/lib/python3.11/test",))`.
    """

    folder: Path
    # Absolute path inside.
    target: str
    # Relative paths that the solver finds empty, or covered by something else.
    masked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A regular file, or what cannot be read as one."""

    # On this machine.
    source: str
    # As the solver sees it.
    path: str
    # None for a file.
    why: Why | None = None


def walk(root: Root, meter: Meter) -> Iterator[Entry]:
    """Yield every file below a root, and whatever is neither file, folder nor link.

    What a link leads to is seen by itself, or not at all.

    Raises:
        SpentError: there are too many, or it takes too long.
    """
    top = str(root.folder.resolve())
    if not root.folder.is_dir():
        yield Entry(source=top, path=root.target)
        return
    masked = {f"{top}/{it}" for it in root.masked}
    target = root.target.rstrip("/")
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        for found in _listed(folder):
            meter.count_entry()
            if isinstance(found, OSError):
                yield Entry(source=folder, path=target + folder[len(top) :], why=_reason(found))
            elif found.path in masked or found.is_symlink():
                continue
            elif found.is_dir(follow_symlinks=False):
                waiting.append(found.path)
            else:
                yield _entry(found, target + found.path[len(top) :])


def _listed(folder: str) -> Iterator["os.DirEntry[str] | OSError"]:
    """Yield what is in a folder as the disk has it, and last what went wrong."""
    try:
        with os.scandir(folder) as listed:
            yield from listed
    except OSError as error:
        if error.errno not in _GONE:
            yield error


def _entry(found: "os.DirEntry[str]", path: str) -> Entry:
    is_file = found.is_file(follow_symlinks=False)
    return Entry(source=found.path, path=path, why=None if is_file else "not a file")


def _reason(error: OSError) -> Why:
    return "path too long" if error.errno == errno.ENAMETOOLONG else "unreadable"
