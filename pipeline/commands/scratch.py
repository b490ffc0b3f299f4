"""Give a command a folder for the trees that it lays out, and for all that is temporary."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_scratch(folder: Path) -> Iterator[Path]:
    """Give a folder of this process alone, gone after the block; sweep those of killed ones."""
    for other in folder.glob("verify-*"):
        if not Path("/proc", other.name.removeprefix("verify-")).exists():
            shutil.rmtree(other, ignore_errors=True)
    own = folder / f"verify-{os.getpid()}"
    shutil.rmtree(own, ignore_errors=True)  # of a killed process that had the same number
    own.mkdir(parents=True)
    try:
        with temporaries_in(own):
            yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


@contextmanager
def temporaries_in(folder: Path) -> Iterator[None]:
    """Have this process make its temporary files and folders in a folder that is swept.

    A killed process leaves its own behind, those of libraries included.
    """
    before = tempfile.tempdir
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
