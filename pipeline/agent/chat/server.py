"""Ask an OpenAI-compatible server over HTTP: be patient while it is busy, and give up aloud."""

import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TypeVar
from urllib.parse import urlsplit

KEY_VARIABLE = "REGROW_KEY"
# A server that is busy or being restarted; anything else it says of a request it will say again.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
NO_LEAVE = frozenset({401, 403})
MAX_ANSWER_BYTES = 2**22
CHUNK_BYTES = 2**16
MAX_SHOWN_CHARS = 200

Answer = TypeVar("Answer")


class ServerError(RuntimeError):
    """A server gave no answer that can be used: nothing was learnt about anything but it.

    One line: where, what it said, what was expected.
    """


class OversizedError(ServerError):
    """A model's answer has no end: what it says is no use, and its server is not at fault."""


class RefusedError(ServerError):
    """A server does not take a request, and will not take it again."""

    def __init__(self, message: str, *, said: str) -> None:
        super().__init__(message)
        # In its own words.
        self.said = said


class _TooLongError(ValueError):
    """An answer of more bytes than anybody reads."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as it is: a key is for the host that it was given for."""

    def redirect_request(self, *_: object) -> None:
        """Say that there is no other request."""


# Of all requests that may carry a key.
OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(slots=True)
class Pace:
    """Keeps the requests of all threads apart, so that no more are made in a minute than allowed.

    Example: `Pace(per_minute=60)` lets one go each second.
    """

    # 0 for as many as there are.
    per_minute: float = 0.0
    _free_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self) -> None:
        """Return when it is this request's turn."""
        if not self.per_minute:
            return
        with self._lock:
            begins_s = max(self._free_s, time.monotonic())
            self._free_s = begins_s + 60 / self.per_minute
        time.sleep(max(0.0, begins_s - time.monotonic()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a model is, and how long to wait for it.

    Example: `Server(url="http://localhost:8000/v1", model="coder-1")`.
    """

    # Without `/chat/completions`.
    url: str
    model: str
    # Of the environment; what the server's key is taken from.
    key_variable: str = KEY_VARIABLE
    # Of one answer, its last byte included.
    timeout_s: float = 600.0
    # Requests for one answer.
    max_tries: int = 5
    # Before the second try; doubled before each more.
    pause_s: float = 1.0
    # Longest pause, whatever a server asks for.
    max_pause_s: float = 60.0
    pace: Pace = field(default_factory=Pace)


def check_url(url: str) -> None:
    """Refuse what is no address of a server.

    Raises:
        ValueError: the URL is not one of HTTP.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError(f"{url!r} is no URL, expected one such as http://host:8000/v1")


def complete(
    server: Server, body: dict[str, object], *, read: Callable[[dict[str, object]], Answer]
) -> Answer:
    """Return what is read of the answer to a request for a chat completion.

    An answer that `read` raises ValueError for is asked for again.

    Raises:
        RefusedError: the server does not take the request.
        OversizedError: an answer has no end, each time.
        ServerError: it failed each time.
    """
    data = json.dumps({"model": server.model, **body}).encode()
    said, kind = "", ServerError
    for number in range(server.max_tries):
        server.pace.wait()
        try:
            return read(_object(_post(data, server)))
        except urllib.error.HTTPError as error:
            with error:
                shown, pause_s = _shown(error), _asked_pause_s(error)
            said, kind = f"status {error.code}: {shown}", ServerError
            if error.code not in PASSING:
                raise _refused(server, said, code=error.code, shown=shown) from error
        except (OSError, HTTPException, ValueError) as error:
            said = f"{type(error).__name__.lstrip('_')}: {error}"
            kind = OversizedError if isinstance(error, _TooLongError) else ServerError
            pause_s = 0.0
        if number + 1 < server.max_tries:
            wanted_s = max(pause_s, server.pause_s * 2**number)
            time.sleep(min(wanted_s, server.max_pause_s))
    raise kind(f"{server.url}: {said}; expected an answer, asked {server.max_tries} times")


def _refused(server: Server, said: str, *, code: int, shown: str) -> RefusedError:
    expected = "a request that it takes"
    if code in NO_LEAVE:
        expected = f"its key in the environment variable {server.key_variable}"
    return RefusedError(f"{server.url}: {said}; expected {expected}", said=shown)


def _post(data: bytes, server: Server) -> bytes:
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get(server.key_variable):
        headers["Authorization"] = f"Bearer {key}"
    url = f"{server.url.rstrip('/')}/chat/completions"
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")  # noqa: S310
    # A server that sends a byte now and then is late all the same.
    deadline = time.monotonic() + server.timeout_s
    with OPENER.open(request, timeout=server.timeout_s) as response:
        parts: list[bytes] = []
        while chunk := response.read1(CHUNK_BYTES):
            parts.append(chunk)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer within {server.timeout_s:g} s")
            if sum(map(len, parts)) > MAX_ANSWER_BYTES:
                raise _TooLongError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    return b"".join(parts)


def _object(data: bytes) -> dict[str, object]:
    answer = json.loads(data)
    if not isinstance(answer, dict):
        raise ValueError(f"no JSON object: {data[:MAX_SHOWN_CHARS]!r}")  # noqa: TRY004  of JSON
    return answer


def _shown(error: urllib.error.HTTPError) -> str:
    """Return the beginning of what a server says: `error.message` of an object, or the text."""
    try:
        data = error.read(CHUNK_BYTES)
    except (OSError, HTTPException):
        return str(error.reason)
    try:
        text = json.loads(data)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        text = data.decode("utf-8", "replace")
    return " ".join(str(text).split())[:MAX_SHOWN_CHARS] or str(error.reason)


def _asked_pause_s(error: urllib.error.HTTPError) -> float:
    """Return how long a server asks to wait; dates, which it may send instead, are not read."""
    asked = error.headers.get("Retry-After") or ""
    return float(asked) if asked.isascii() and asked.isdecimal() else 0.0
