"""Talk to a model over HTTP, as OpenAI-compatible servers take it; be patient and give up aloud."""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit

KEY_VARIABLE = "REGROW_JUDGE_KEY"
# A server that is busy or being restarted; anything else it says of a request it will say again.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
MAX_ANSWER_BYTES = 2**22
CHUNK_BYTES = 2**16
MAX_SHOWN_CHARS = 200

Message = Mapping[str, str]


class JudgeError(RuntimeError):
    """The judge gave no answer that can be used: nothing was learnt about any attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the judge is, and how long to wait for it.

    Example: `Endpoint(url="http://localhost:8000/v1", model="judge-1")`.
    """

    # Without `/chat/completions`.
    url: str
    model: str
    # Of one answer.
    timeout_s: float = 120.0
    # Requests for one answer.
    max_tries: int = 5
    # Before the second try; doubled before each more.
    pause_s: float = 1.0
    # Longest pause, whatever a server asks for.
    max_pause_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model wrote."""

    text: str
    num_prompt_tokens: int
    num_completion_tokens: int


def check_endpoint(endpoint: Endpoint) -> None:
    """Refuse what is no address of a server.

    Raises:
        ValueError: the URL is not one of HTTP.
    """
    parts = urlsplit(endpoint.url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ValueError(f"{endpoint.url!r} is no URL, expected one such as http://host:8000/v1")


def ask(messages: Sequence[Message], *, endpoint: Endpoint) -> Reply:
    """Return the model's answer at temperature 0; a key is taken from `REGROW_JUDGE_KEY`.

    Raises:
        JudgeError: the server refused, or failed each time.
    """
    body = {"model": endpoint.model, "messages": list(messages), "temperature": 0}
    said = ""
    for number in range(endpoint.max_tries):
        try:
            return _reply(_post(json.dumps(body).encode(), endpoint))
        except urllib.error.HTTPError as error:
            said = f"status {error.code}: {_shown(error)}"
            if error.code not in PASSING:
                break
            pause_s = _asked_pause_s(error)
        except (OSError, HTTPException, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
            pause_s = 0.0
        if number + 1 < endpoint.max_tries:
            wanted_s = max(pause_s, endpoint.pause_s * 2**number)
            time.sleep(min(wanted_s, endpoint.max_pause_s))
    raise JudgeError(f"{endpoint.url}: the judge gave no answer: {said}")


def _post(body: bytes, endpoint: Endpoint) -> bytes:
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get(KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {key}"
    url = f"{endpoint.url.rstrip('/')}/chat/completions"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310
    # A server that sends a byte now and then is late all the same.
    deadline = time.monotonic() + endpoint.timeout_s
    with urllib.request.urlopen(request, timeout=endpoint.timeout_s) as response:  # noqa: S310
        parts: list[bytes] = []
        while chunk := response.read1(CHUNK_BYTES):
            parts.append(chunk)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer within {endpoint.timeout_s:g} s")
            if sum(map(len, parts)) > MAX_ANSWER_BYTES:
                raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    return b"".join(parts)


def _reply(data: bytes) -> Reply:
    """Read an answer.

    Raises:
        ValueError: it is not what such servers send.
    """
    answer = json.loads(data)
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            usage = answer.get("usage") or {}
            return Reply(
                text=text,
                num_prompt_tokens=int(usage.get("prompt_tokens", 0)),
                num_completion_tokens=int(usage.get("completion_tokens", 0)),
            )
    raise ValueError(f"an answer without a message: {data[:MAX_SHOWN_CHARS]!r}")


def _shown(error: urllib.error.HTTPError) -> str:
    text = error.read(MAX_SHOWN_CHARS).decode("utf-8", "replace")
    return " ".join(text.split()) or error.reason


def _asked_pause_s(error: urllib.error.HTTPError) -> float:
    """Return how long a server asks to wait; dates, which it may send instead, are not read."""
    asked = error.headers.get("Retry-After") or ""
    return float(asked) if asked.isdigit() else 0.0
