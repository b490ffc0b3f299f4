"""Keep folders between runs, each whole or not there."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return `$REGROW_CACHE`, else `$XDG_CACHE_HOME/regrow`, else `~/.cache/regrow`."""
    own = os.environ.get("REGROW_CACHE")
    if own:
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).absolute() if shared else Path.home() / ".cache") / "regrow"


@contextmanager
def beside(final: Path) -> Iterator[Path]:
    """Yield an empty folder to make `final` in, on the same disk; gone after the block."""
    final.parent.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix=".partial-", dir=final.parent)
    try:
        yield Path(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def publish(folder: Path, final: Path) -> None:
    """Give a complete folder its name.

    When two processes race, the first one wins and both go on with its folder.

    Raises:
        OSError: the disk is broken; there is no `final`.
    """
    try:
        folder.rename(final)
    except OSError:
        if not final.is_dir():
            raise
