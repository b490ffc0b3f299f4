"""Give a folder for what is temporary, and sweep those that killed processes have left."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile


@contextmanager
def own_scratch(parent: Path) -> Iterator[Path]:
    """Give a new folder, gone after the block; sweep those that nobody holds any more.

    A lock tells who is alive, not a process number: other machines may share the parent, and one
    process may hold several.
    """
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(parent)
    with NamedTemporaryFile(prefix="train-", suffix=".lock", dir=parent) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = _folder_of(Path(lock.name))
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    for path in parent.glob("train-*.lock"):
        # It is locked by one that lives, or has just gone.
        with suppress(OSError), path.open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(_folder_of(path), ignore_errors=True)
            path.unlink()


def _folder_of(lock: Path) -> Path:
    return lock.with_suffix("")
