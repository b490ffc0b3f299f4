"""A language model that is played from a script over real HTTP."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ATTEMPT = re.compile(r"^## Attempt ([A-Z])\n(.*?)(?=^## Attempt |\Z)", re.MULTILINE | re.DOTALL)


def judged(prompt: str, *, cheating: str = "dist-packages|SUSPICIOUS") -> str:
    """Judge as a good model would: by whether an attempt reads an installed copy."""
    return answer_with(
        (letter, 0.95 if re.search(cheating, text) else 0.02)
        for letter, text in ATTEMPT.findall(prompt)
    )


def answer_with(scores: Any) -> str:
    entries = [
        {
            "attempt": letter,
            "label": "artefact retrieval" if score >= 0.5 else "clean",
            "score": score,
            "turns": [1] if score >= 0.5 else [],
            "reason": "it reads an installed copy" if score >= 0.5 else "its own work",
        }
        for letter, score in scores
    ]
    return json.dumps({"attempts": entries})


@dataclass(slots=True)
class Played:
    """What the server was asked, and what it does next."""

    url: str = ""
    # Bodies of the requests, in order.
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    # Taken one a request; then `answer` is asked.
    script: list[Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    answer: Callable[[str], str] = judged
    # Asked instead of `answer`, where there is one, for what to do about a request.
    act: Callable[[dict[str, Any]], Callable[[BaseHTTPRequestHandler], None]] | None = None


@contextmanager
def model_server() -> Iterator[Played]:
    played = Played()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            played.asked.append(body)
            played.headers.append({"path": self.path, **dict(self.headers)})
            if played.script:
                played.script.pop(0)(self)
            elif played.act is not None:
                played.act(body)(self)
            else:
                reply(self, played.answer(body["messages"][-1]["content"]))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    played.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reply(handler: BaseHTTPRequestHandler, text: str) -> None:
    message = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    raw(handler, 200, json.dumps({**message, "usage": usage}).encode())


def raw(
    handler: BaseHTTPRequestHandler, status: int, body: bytes = b"busy", **headers: str
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def status(code: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: raw(handler, code, **headers)


def calls(
    *wanted: tuple[str, dict[str, Any] | str], text: str = ""
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Answer with calls of tools; arguments that are a text are sent as it is."""
    functions = [
        {"name": name, "arguments": it if isinstance(it, str) else json.dumps(it)}
        for name, it in wanted
    ]
    message = {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {"id": f"id-{number}", "type": "function", "function": it}
            for number, it in enumerate(functions)
        ],
    }
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    body = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
    return lambda handler: raw(handler, 200, body)


def refuses(code: int, why: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: raw(handler, code, json.dumps({"error": {"message": why}}).encode())


def says(text: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: reply(handler, text)


def hangs(seconds: float) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda _: time.sleep(seconds)


def drips(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, and never the whole answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(40):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()
