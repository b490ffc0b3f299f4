"""Finding an engine, and saying in one line what is wrong with it."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipeline.sandbox.choose import open_sandbox, probe
from pipeline.sandbox.docker.engine import Engine, connect
from pipeline.sandbox.protocol import SandboxBrokenError, SandboxUnavailableError


class OldEngine(BaseHTTPRequestHandler):
    """Answers as Docker 19.03 does when asked for its version."""

    def do_GET(self) -> None:
        body = json.dumps({"ApiVersion": "1.40", "Version": "19.03.15"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_an_engine_that_is_not_there_is_named_with_its_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for address in (closed_port(), f"unix://{tmp_path}/none.sock", "tcp://name.invalid:1"):
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(SandboxUnavailableError) as caught:
            open_sandbox("docker")
        message = str(caught.value)
        assert message.startswith(f"no Docker engine answers at {address} (DOCKER_HOST): ")
        assert "\n" not in message


def test_an_address_that_makes_no_sense_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", "nonsense")
    with pytest.raises(SandboxUnavailableError, match=r"nonsense \(DOCKER_HOST\): .*port"):
        connect()


def test_an_engine_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch):
    with serving(OldEngine) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        with pytest.raises(SandboxUnavailableError) as caught:
            connect()
    assert "too old: it speaks API 1.40, expected 1.41 or later" in str(caught.value)


def test_the_probe_says_what_keeps_docker_from_working(monkeypatch: pytest.MonkeyPatch):
    address = closed_port()
    monkeypatch.setenv("DOCKER_HOST", address)
    (found,) = (it for it in probe() if it.name == "docker")
    assert not found.works
    assert address in found.detail


def test_what_the_engine_refuses_is_the_machines_fault(engine: Engine):
    refusal = "Docker cannot do this: No such container"
    with pytest.raises(SandboxBrokenError, match=refusal), engine.calls("do this"):
        engine.api.inspect_container("regrow-none")


def test_a_full_disk_is_refused_before_a_start(engine: Engine):
    engine.raise_if_full(1)
    with pytest.raises(SandboxBrokenError, match=r"only \d+ MiB are free in /"):
        engine.raise_if_full(2**60)
