"""The machine's own Docker engine, and another that a test may stop."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import docker
import pytest

from pipeline.sandbox.docker.base import ensure_base
from pipeline.sandbox.docker.engine import Engine, connect
from pipeline.sandbox.protocol import GIB, SandboxUnavailableError
from tests.pipeline.sandbox.conftest import unavailable

# Nobody reads what a container would say over a network it does not have.
FLAGS = ("--bridge=none", "--iptables=false", "--ip-masq=false", "--storage-driver=overlay2")


@pytest.fixture(scope="session")
def engine() -> Engine:
    try:
        opened = connect()
    except SandboxUnavailableError as error:
        unavailable(str(error))
    return opened


@pytest.fixture(scope="session")
def base(engine: Engine) -> str:
    """Return the id of the base image."""
    return ensure_base(engine)


class SecondEngine:
    """An engine that tests may stop, at a socket and at a port."""

    def __init__(self, folder: Path, *, port: int) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.unix = f"unix://{folder}/docker.sock"
        self.tcp = f"tcp://127.0.0.1:{port}"

    def start(self) -> None:
        """Start it, again and again as a service manager would, until it answers."""
        deadline_s = time.monotonic() + 120
        self._process = self._spawn()
        while not self._answers():
            if self._process.poll() is not None:
                self._process = self._spawn()
            assert time.monotonic() < deadline_s, (self._folder / "log").read_text()[-2000:]
            time.sleep(0.2)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    "dockerd",
                    *FLAGS,
                    f"--data-root={self._folder}/data",
                    f"--exec-root={self._folder}/exec",
                    f"--pidfile={self._folder}/pid",
                    f"--host={self.unix}",
                    f"--host={self.tcp}",
                    "--tls=false",
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, *, number: int = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(60)

    def vanish(self) -> None:
        """Stop it, and end what a killed engine has left of itself."""
        self.stop()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if str(self._folder).encode() in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted(mounts, reverse=True):
            if Path(place).is_relative_to(self._folder):
                subprocess.run(["umount", "--lazy", place], check=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def started_after(self) -> Iterator[None]:
        """Start it at the end of a block."""
        try:
            yield
        finally:
            self.start()

    def _answers(self) -> bool:
        host, port = self.tcp.removeprefix("tcp://").split(":")
        with suppress(OSError), closing(HTTPConnection(host, int(port), timeout=5)) as connection:
            connection.request("GET", "/_ping")
            return connection.getresponse().status == HTTPStatus.OK
        return False


@pytest.fixture(scope="session")
def second_engine(engine: Engine, base: str) -> Iterator[SecondEngine]:
    """An engine of our own, with the same base image."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        unavailable("a second engine needs root and `dockerd`")
    # By name: an image without one is nobody's.
    tag = engine.api.inspect_image(base)["RepoTags"][0]
    folder = Path(tempfile.mkdtemp(prefix="regrow-engine-", dir=roomy_folder()))
    second = SecondEngine(folder, port=free_port())
    second.start()
    try:
        with closing(docker.APIClient(base_url=second.unix, version="1.41")) as api:
            for _ in api.load_image(b"".join(engine.api.get_image(tag))):
                pass
        yield second
    finally:
        second.vanish()


def roomy_folder() -> str:
    """Return where to write much that nobody keeps: in memory, where there is enough."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > 4 * GIB
    return str(memory) if has_room else tempfile.gettempdir()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
