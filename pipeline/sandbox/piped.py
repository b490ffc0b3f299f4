"""Carry bytes to and from a `serve.py` that runs under bwrap, over pipes."""

import fcntl
import os
import select

from pipeline.sandbox.process import Process
from pipeline.sandbox.protocol import LimitName

_CHUNK_BYTES = 2**20
# Seconds without any movement after which nobody is taken to be there.
_PATIENCE_S = 60.0
_COMPLAINT_BYTES = 2**12


class Piped:
    """The transport of a session with a process on this machine."""

    def __init__(self, process: Process, *, stdin: int, output: int, error: int) -> None:
        self._process = process
        self._stdin, self._output, self._error = stdin, output, error
        for fd in (stdin, output, error):
            os.set_blocking(fd, False)
        # Fewer switches between the two ends.
        fcntl.fcntl(stdin, fcntl.F_SETPIPE_SZ, _CHUNK_BYTES)

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            OSError: nobody takes it (any more).
        """
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._stdin, left) :]
            except BlockingIOError:
                if not _wait(self._stdin, select.POLLOUT, _PATIENCE_S):
                    raise TimeoutError("the sandbox takes nothing") from None

    def recv(self, timeout_s: float) -> bytes | None:
        """Return what has come: empty at the end of all, None when nothing came in time."""
        if not _wait(self._output, select.POLLIN, timeout_s):
            return None
        return os.read(self._output, _CHUNK_BYTES)

    def kill(self) -> None:
        """End it with everything inside."""
        self._process.kill()

    def died_of(self) -> LimitName | None:
        """Return nothing: its surroundings have no limits."""
        return None

    def complaint(self) -> str:
        """Return in one line what it said before it ended, or nothing."""
        try:
            text = os.read(self._error, _COMPLAINT_BYTES).decode("utf-8", "replace")
        except BlockingIOError:
            return ""
        lines = text.strip().splitlines()
        return lines[-1] if lines else ""


def _wait(fd: int, events: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, events)
    return bool(poll.poll(max(0, timeout_s) * 1000))
