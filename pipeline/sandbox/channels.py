"""Move what flows between the driver and one job, without ever waiting for either."""

import contextlib
import os
import selectors
from typing import Self

from pipeline.sandbox.pipe import Pipe
from pipeline.sandbox.protocol import Job

_CHUNK_BYTES = 2**16
_STATUS_BYTES = 2**12


class Channels:
    """The pipes of one job: standard input, and four that it writes to; a context manager."""

    def __init__(self, job: Job) -> None:
        with contextlib.ExitStack() as stack:
            self._stdin = stack.enter_context(Pipe())
            os.set_blocking(self._stdin.writer, False)
            self._unsent = memoryview(job.stdin)
            self._selector = stack.enter_context(selectors.DefaultSelector())
            self.output = stack.enter_context(Intake(job.limits.output_bytes))
            self.results = stack.enter_context(Intake(job.limits.results_bytes))
            self.status = stack.enter_context(Intake(_STATUS_BYTES))
            self.collected = stack.enter_context(Intake(job.limits.results_bytes))
            self._intakes = (self.output, self.results, self.status, self.collected)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def stdin(self) -> int:
        """The end of standard input that the job inherits."""
        return self._stdin.reader

    @property
    def is_over(self) -> bool:
        """Whether the job has written more than it may."""
        return any(intake.is_over for intake in self._intakes)

    def connect(self, ended_fd: int) -> None:
        """Close the job's ends, now that it has them; wake up once `ended_fd` is readable."""
        self._selector.register(ended_fd, selectors.EVENT_READ)
        for intake in self._intakes:
            intake.close(intake.writer)
            self._selector.register(intake.reader, selectors.EVENT_READ, intake)
        self._stdin.close(self._stdin.reader)
        if self._unsent:
            self._selector.register(self._stdin.writer, selectors.EVENT_WRITE)
        else:
            self._stdin.close(self._stdin.writer)

    def pump(self, timeout_s: float) -> None:
        """Move what can be moved now; wait up to `timeout_s` for anything to move."""
        for key, _ in self._selector.select(timeout_s):
            if isinstance(key.data, Intake) and not key.data.read():
                self._selector.unregister(key.fd)
            elif key.fd == self._stdin.writer and not self._feed():
                self._selector.unregister(key.fd)
                self._stdin.close(key.fd)

    def drain(self) -> None:
        """Take what a job has left in its pipes, whoever else may still hold them."""
        for intake in self._intakes:
            before = -1
            while len(intake.data) > before and intake.read():
                before = len(intake.data)

    def _feed(self) -> bool:
        """Write to standard input; return whether more is to come."""
        try:
            written = os.write(self._stdin.writer, self._unsent[:_CHUNK_BYTES])
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[written:]
        return bool(self._unsent)


class Intake(Pipe):
    """A pipe that a job writes to: read until it ends, or has brought more than its cap."""

    def __init__(self, cap_bytes: int) -> None:
        super().__init__()
        os.set_blocking(self.reader, False)
        self._cap_bytes = cap_bytes
        # What came, at most the cap.
        self.data = bytearray()
        # Whether there was more.
        self.is_over = False

    def read(self) -> bool:
        """Take a chunk of what is there; return whether more may come."""
        if self.is_over:
            return False
        try:
            chunk = os.read(self.reader, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        room = self._cap_bytes - len(self.data)
        self.data += chunk[:room]
        self.is_over = len(chunk) > room
        return bool(chunk) and not self.is_over
