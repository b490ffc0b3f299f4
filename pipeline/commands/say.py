"""What all commands share: where they print, and how they end on bad input."""

import json
import logging
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from pipeline.index import IndexUnreachableError
from pipeline.manifest import ManifestError
from pipeline.sandbox.protocol import (
    SandboxBrokenError,
    SandboxStoppedError,
    SandboxUnavailableError,
)
from pipeline.task.manifest import ShardError
from pipeline.uv import InstallError

BAD_INPUT = 2
BROKEN_MACHINE = 1
INTERRUPTED = 130

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)

BROKEN = (SandboxUnavailableError, SandboxBrokenError, IndexUnreachableError, InstallError, OSError)


class _Notices(logging.Handler):
    """Print what the machinery has to say in between, above any bars."""

    def emit(self, record: logging.LogRecord) -> None:
        notice(record.getMessage())


def show_notices() -> None:
    """Print the notices of sandbox and leak gate on standard error, whatever else is logged."""
    for name in ("pipeline.sandbox", "pipeline.leaks"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [_Notices()]


def printable(text: str) -> str:
    """Return foreign text without what a terminal would obey, such as escapes; lines are kept."""
    kept = (char for char in text if char in "\n\t" or unicodedata.category(char)[0] != "C")
    return "".join(kept)


def one_line(value: object, *, style: str = "") -> Text:
    """Return foreign text as one line that is shown as it is, square brackets included."""
    return Text(printable(" ".join(str(value).splitlines())).replace("\t", " "), style=style)


def notice(message: str) -> None:
    """Print one line on standard error that is worth knowing and ends nothing."""
    ERR.print(one_line(message, style="yellow"), soft_wrap=True)


def complain(message: str) -> None:
    """Print one line on standard error."""
    ERR.print(one_line(f"error: {message}"), soft_wrap=True, style="bold red")


def end(message: str, *, code: int) -> NoReturn:
    """Print one line on standard error and end the command."""
    complain(message)
    raise typer.Exit(code)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what a user or a machine can cause into one line and an exit code."""
    try:
        yield
    except (ManifestError, ShardError) as error:
        end(str(error), code=BAD_INPUT)
    except SandboxStoppedError:
        end("stopped", code=INTERRUPTED)
    except BROKEN as error:
        end(str(error), code=BROKEN_MACHINE)


def print_json(value: object) -> None:
    """Print one JSON object for machines."""
    typer.echo(json.dumps(value, indent=1, sort_keys=True))


def existing_run(run: Path) -> Path:
    """Return a run folder that is there, or end the command."""
    if not run.is_dir():
        end(f"{run}: no such folder, expected the output of `regrow generate`", code=BAD_INPUT)
    return run
