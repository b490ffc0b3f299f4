"""What the trainer's commands share: where they print, and how they end."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Timer
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

BAD_INPUT = 2
BROKEN_MACHINE = 1
INTERRUPTED = 130
# What does not end by itself after a signal has this long; what is on disk is whole all the time.
GRACE_S = 10.0

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)


def end(message: str, *, code: int) -> NoReturn:
    """Print one line on standard error and end the command."""
    _complain(message)
    raise typer.Exit(code)


@contextmanager
def ending_in_one_line(interrupted: str) -> Iterator[None]:
    """Turn what a user or a machine can cause into one line and an exit code.

    After a signal threads may still wait for a model or a server; they are not waited for long.
    """
    said = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _interrupt(interrupted, said))
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        said.set()
        end(interrupted, code=INTERRUPTED)
    except ValueError as error:
        # Configurations, shards, models, checkpoints: what is wrong, where, what was expected.
        end(str(error), code=BAD_INPUT)
    except (OSError, RuntimeError) as error:
        # The engine, the sandbox, another rank, the disk: the last checkpoint is kept.
        end(str(error) or type(error).__name__, code=BROKEN_MACHINE)


def _interrupt(message: str, said: Event) -> NoReturn:
    timer = Timer(GRACE_S, _leave, (message, said))
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def _leave(message: str, said: Event) -> None:
    """End the process whatever its threads wait for."""
    try:
        if not said.is_set():
            _complain(message)
    finally:
        os._exit(INTERRUPTED)


def _complain(message: str) -> None:
    line = " ".join(message.split())
    ERR.print(Text(f"error: {line}", style="bold red"), soft_wrap=True)
