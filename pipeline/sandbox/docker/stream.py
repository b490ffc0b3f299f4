"""Carry bytes to and from the first process of a container, over the engine's attach call."""

import contextlib
import select
import socket
import struct
import time
from typing import Any

from pipeline.sandbox.docker.relay import plain_socket

# Of the engine's attach protocol: stream number, three zeros, length.
_HEADER = struct.Struct(">BxxxL")
_STDOUT = 1
_CHUNK_BYTES = 2**18
# What is kept of standard error: why the first process could not start.
_COMPLAINT_BYTES = 2**12


class Stream:
    """Standard input, output and error of a container.

    Example: `Stream(api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stream": 1}))`.
    """

    def __init__(self, attached: Any) -> None:  # noqa: ANN401
        # Keeps the connection from being used for something else.
        self._attached = attached
        self._socket = plain_socket(attached)
        # A container may be silent for as long as it likes.
        self._socket.settimeout(None)
        self._header = bytearray()
        self._number, self._left = 0, 0
        # The beginning of standard error.
        self.complaint = bytearray()

    def send(self, data: bytes) -> None:
        """Send all of it.

        Raises:
            OSError: the container or its engine is gone.
        """
        self._socket.sendall(data)

    def recv(self, timeout_s: float) -> bytes | None:
        """Return what has come: empty at the end of all, None when nothing came in time.

        Raises:
            OSError: the connection broke.
        """
        deadline_s = time.monotonic() + timeout_s
        while self._is_readable(deadline_s):
            wanted = min(self._left, _CHUNK_BYTES) or _HEADER.size - len(self._header)
            chunk = self._socket.recv(wanted)
            if not chunk:
                return b""
            if not self._left:
                self._take_header(chunk)
            elif self._take(chunk):
                return chunk
        return None

    def _is_readable(self, deadline_s: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(1000 * max(0.0, deadline_s - time.monotonic())))

    def _take_header(self, chunk: bytes) -> None:
        """Take a part of the header that comes before each piece."""
        self._header += chunk
        if len(self._header) == _HEADER.size:
            self._number, self._left = _HEADER.unpack(self._header)
            self._header.clear()

    def _take(self, chunk: bytes) -> bool:
        """Take a part of a piece; return whether it is of standard output."""
        self._left -= len(chunk)
        if self._number == _STDOUT:
            return True
        self.complaint += chunk[: _COMPLAINT_BYTES - len(self.complaint)]
        return False

    def shut(self) -> None:
        """End the stream, also for a thread that waits on it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give back what the stream holds."""
        self.shut()
        self._socket.close()
        self._attached.close()
