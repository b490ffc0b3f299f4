"""Give a command a folder for the trees that it lays out, and for all that is temporary."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.sandbox.scratch import own_scratch


@contextmanager
def command_scratch(folder: Path) -> Iterator[Path]:
    """Give a folder of this command alone, gone after the block, and its temporary files in it."""
    with own_scratch(folder) as own, temporaries_in(own):
        yield own


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
