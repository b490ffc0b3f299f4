"""A process that does one piece of work, and does not outlive the process that started it."""

import ctypes
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Protocol

from pipeline.task.claims import NotMeasuredError

# Of `linux/prctl.h`.
_PR_SET_PDEATHSIG = 1
# Forked, because a process that imports torch anew takes longer than a quick run.
_FORK = get_context("fork")

Tell = Callable[[str], None]


class Work(Protocol):
    """A piece of work that leaves one file."""

    def path(self, folder: Path) -> Path:
        """Return the file."""

    def do(self, folder: Path, *, tell: Tell) -> str:
        """Do it, and tell how it goes; return a line about what came of it.

        Raises:
            NotMeasuredError: it cannot be done.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A line of a worker."""

    text: str
    # It is about what came of the work, which is done.
    is_last: bool


class Worker:
    """A process that does a piece of work."""

    def __init__(self, work: Work, folder: Path) -> None:
        self._name = work.path(folder).stem
        # Readable when it has said something or has ended.
        self.news, writes = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_do, args=(work, folder, writes, os.getpid()))
        self._process.start()
        # The worker's end alone: when it is gone, so is the worker.
        writes.close()

    def hear(self) -> Said | None:
        """Wait for the next line, and return it; None when the worker has ended.

        Raises:
            NotMeasuredError: the work cannot be done, or the worker was killed.
        """
        try:
            said: Said | NotMeasuredError = self.news.recv()
        except EOFError:
            self._end()
            return None
        if isinstance(said, NotMeasuredError):
            raise said
        return said

    def _end(self) -> None:
        self._process.join()
        if code := self._process.exitcode:
            how = signal.Signals(-code).name if code < 0 else f"status {code}"
            raise NotMeasuredError(f"{self._name}: its process ended with {how}")

    def kill(self) -> None:
        """End it, whatever it is at."""
        self._process.kill()
        self._process.join()
        self.news.close()


def with_news(workers: Sequence[Worker]) -> list[Worker]:
    """Wait until some of the workers have said something or ended, and return these."""
    ready = wait([worker.news for worker in workers])
    return [worker for worker in workers if worker.news in ready]


def _do(work: Work, folder: Path, writes: Connection, parent: int) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent ends this one. What the parent does
    # at SIGTERM is not for its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _die_with(parent)
    try:
        last = work.do(folder, tell=lambda text: writes.send(Said(text=text, is_last=False)))
        writes.send(Said(text=last, is_last=True))
    except NotMeasuredError as error:
        writes.send(error)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # It may have ended before that.
    if os.getppid() != parent:
        os._exit(1)
