"""Give a folder for what is temporary, and sweep those that killed processes have left."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

_PREFIX = "own-"


@contextmanager
def own_scratch(parent: Path) -> Iterator[Path]:
    """Give a new folder, gone after the block; sweep those that nobody holds any more.

    A lock tells who is alive, not a process number: other machines may share the parent, and one
    process may hold several.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent)
    with _locked(parent) as folder:
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(parent: Path) -> Iterator[Path]:
    """Give a name for a folder that is this holder's while its lock is."""
    while True:
        descriptor, name = mkstemp(prefix=_PREFIX, suffix=".lock", dir=parent)
        lock = Path(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # A sweeper may have come between the file and its lock, and have taken it away.
            if lock.exists():
                yield _folder_of(lock)
                return
        finally:
            lock.unlink(missing_ok=True)
            os.close(descriptor)


def _sweep(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*.lock"):
        # It is locked by one that lives, or has just gone.
        with suppress(OSError), path.open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(_folder_of(path), ignore_errors=True)
            path.unlink()


def _folder_of(lock: Path) -> Path:
    return lock.with_suffix("")
