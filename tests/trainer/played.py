"""A server that answers over real HTTP as a script says: one that is broken, or another's."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


@dataclass(slots=True)
class Played:
    """What the server was asked."""

    url: str = ""
    # Path, headers and body of each request.
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def played(answer: Callable[[int], Answer]) -> Iterator[Played]:
    """Serve `answer(number of the request)`: a status, and an object or plain bytes."""
    seen = Played()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.asked.append((self.path, dict(self.headers), body))
            status, said = answer(len(seen.asked) - 1)
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        seen.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()
