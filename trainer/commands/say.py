"""What the trainer's commands share: where they print, and how they end on bad input."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

BAD_INPUT = 2
BROKEN_MACHINE = 1
INTERRUPTED = 130

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def end(message: str, *, code: int) -> NoReturn:
    """Print one line on standard error and end the command."""
    line = " ".join(message.split())
    ERR.print(Text(f"error: {line}", style="bold red"), soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what a user or a machine can cause into one line and an exit code."""
    try:
        yield
    except ValueError as error:
        # Configurations, shards, models, checkpoints: what is wrong, where, what was expected.
        end(str(error), code=BAD_INPUT)
    except (OSError, RuntimeError) as error:
        # The engine, the sandbox, another rank, the disk: the last checkpoint is kept.
        end(str(error) or type(error).__name__, code=BROKEN_MACHINE)
