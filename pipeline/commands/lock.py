"""Hold a run folder for one process that writes it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.commands.say import BAD_INPUT, end


@contextmanager
def held(run: Path) -> Iterator[None]:
    """Hold a run folder for the time of a block, or end the command: another one writes it."""
    with (run / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            end(f"{run}: another `regrow` command is at work here", code=BAD_INPUT)
        yield
