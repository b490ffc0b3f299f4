"""Give a command a folder for the trees that it lays out."""

import os
import shutil
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
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
