"""Give a connection that is no plain socket, such as TLS or SSH, the behaviour of one."""

import contextlib
import socket
import threading
from typing import Any

_CHUNK_BYTES = 2**16


def plain_socket(attached: Any) -> socket.socket:  # noqa: ANN401
    """Return a socket to wait on for what the SDK returns of an attach call."""
    own = getattr(attached, "_sock", attached)
    # Exactly: what TLS has decrypted already does not show in a selector.
    if type(own) is socket.socket:
        return own
    near, inner = socket.socketpair()
    for source, sink in ((inner, own), (own, inner)):
        threading.Thread(target=_copy, args=(source, sink), daemon=True).start()
    return near


def _copy(source: Any, sink: Any) -> None:  # noqa: ANN401
    """Carry bytes until either side ends, then end both."""
    with contextlib.suppress(OSError, ValueError):
        while chunk := source.recv(_CHUNK_BYTES):
            sink.sendall(chunk)
    for side in (source, sink):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
