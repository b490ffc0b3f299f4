"""Ask a server over HTTP: be patient while it is busy or away, and give up aloud."""

import json
import os
import time
import urllib.error
import urllib.request
from http.client import HTTPException

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from pipeline.agent.chat.server import OPENER
from trainer.engine import EngineError
from trainer.settings import Settings

KEY_VARIABLE = "REGROW_ENGINE_KEY"
# A server that is busy or being restarted; anything else it says of a request it will say again.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
MAX_PAUSE_S = 60.0
MAX_SHOWN_CHARS = 200
CHUNK_BYTES = 2**16


class Patience(Settings):
    """How long a server is waited for."""

    # Seconds for one answer, the last byte included.
    timeout_s: PositiveFloat = 600.0
    # Requests for one answer.
    max_tries: PositiveInt = 5
    # Seconds before the second try; doubled before each more, up to a minute.
    pause_s: NonNegativeFloat = 1.0


def ask(
    url: str, body: dict[str, object], *, patience: Patience, key_variable: str = KEY_VARIABLE
) -> dict[str, object]:
    """Post an object and return the one that comes back; a key comes from the environment.

    Raises:
        EngineError: the server refused, failed each time, or sent something else than an object.
    """
    said = ""
    for number in range(patience.max_tries):
        if number:
            time.sleep(min(patience.pause_s * 2 ** (number - 1), MAX_PAUSE_S))
        try:
            key = os.environ.get(key_variable, "")
            data = _post(url, json.dumps(body).encode(), key=key, timeout_s=patience.timeout_s)
            return _read(data, url)
        except urllib.error.HTTPError as error:
            with error:
                said = f"status {error.code}: {_shown(error)}"
            if error.code not in PASSING:
                raise EngineError(f"{url}: {said}; expected status 200") from error
        except (OSError, HTTPException) as error:
            said = f"{type(error).__name__}: {error}"
    raise EngineError(f"{url}: {said}; expected status 200, asked {patience.max_tries} times")


def show(value: object) -> str:
    """Return the beginning of what a server sent, for people."""
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _post(url: str, body: bytes, *, key: str, timeout_s: float) -> bytes:
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310
    # A server that sends a byte now and then is late all the same.
    deadline = time.monotonic() + timeout_s
    with OPENER.open(request, timeout=timeout_s) as response:
        parts: list[bytes] = []
        while chunk := response.read1(CHUNK_BYTES):
            parts.append(chunk)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer within {timeout_s:g} s")
    return b"".join(parts)


def _read(data: bytes, url: str) -> dict[str, object]:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise EngineError(f"{url}: {show(data)!r}, expected a JSON object")
    return answer


def _shown(error: urllib.error.HTTPError) -> str:
    """Return a server's reason: `error.message` of a JSON object, or the text as it is."""
    try:
        data = error.read()
    except (OSError, HTTPException):
        return str(error.reason)
    try:
        return show(json.loads(data)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return show(data.decode("utf-8", "replace")) or str(error.reason)
