"""Talk to one Docker engine, telling an engine that is gone from one that says no."""

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound

from pipeline.sandbox.protocol import SandboxBrokenError, SandboxUnavailableError

MIN_API = (1, 41)
# Seconds without a word after which an engine hangs.
_TIMEOUT_S = 120
_PING_TIMEOUT_S = 5
_DEFAULT_ADDRESS = "unix:///var/run/docker.sock"
# What the SDK raises when nobody is at the other end, or no longer.
_LOST = (requests.ConnectionError, requests.Timeout, OSError)


class EngineLostError(SandboxBrokenError):
    """The engine does not answer any more; what it was doing has to be done again."""


class Engine:
    """A Docker engine that has answered once.

    Example: `connect().api.containers()`.
    """

    def __init__(self, client: docker.DockerClient, *, address: str) -> None:
        self.client = client
        # One call for each of the engine's; the SDK describes the types of some alone.
        self.api: Any = client.api
        # The SDK would keep one open for each address that it was asked for.
        self.api.headers["Connection"] = "close"
        client.close()
        self.address = address
        info = self.api.info()
        # As `platform.machine()` names it.
        self.architecture = str(info["Architecture"])
        self.num_cores = int(info["NCPU"])
        self._data_root = Path(info["DockerRootDir"])
        # Whether the engine shares this machine's disks.
        self.is_local = address.startswith("unix:") and self._data_root.is_dir()

    def answers(self) -> bool:
        """Tell whether the engine is there."""
        try:
            _knock(self.address)
            with self.api.get(f"{self.api.base_url}/_ping", timeout=_PING_TIMEOUT_S) as answer:
                return bool(answer.ok)
        except _LOST:
            return False

    @contextmanager
    def calls(self, doing: str) -> Iterator[None]:
        """Turn what the SDK raises into what it means.

        Args:
            doing: what is being done, for the message: `start a container`.

        Raises:
            EngineLostError: the engine is gone.
            SandboxBrokenError: the engine says that it cannot.
        """
        try:
            _knock(self.address)
            yield
        except APIError as error:
            if not self.answers():
                raise EngineLostError(str(error)) from error
            raise SandboxBrokenError(f"Docker cannot {doing}: {reason(error)}") from error
        except (*_LOST, DockerException) as error:
            raise EngineLostError(str(error)) from error

    def find_image(self, name: str) -> dict[str, Any] | None:
        """Return what the engine says of an image, by tag or id; None when it has no such."""
        with self.calls("look for an image"):
            try:
                return dict(self.api.inspect_image(name))
            except ImageNotFound:
                return None

    def wait_until_back(self, stopped: threading.Event, *, backoff_s: float = 0.5) -> bool:
        """Wait for the engine, ever more patiently; return whether it is back before a stop."""
        while not stopped.wait(backoff_s):
            if self.answers():
                return True
            backoff_s = min(2 * backoff_s, 10.0)
        return False

    def raise_if_full(self, min_free_bytes: int) -> None:
        """Refuse to fill the last of a disk.

        Raises:
            SandboxBrokenError: too little is free for temporary files, or for a near engine's own.
        """
        folders = [Path(tempfile.gettempdir()), *([self._data_root] if self.is_local else [])]
        for folder in folders:
            free_bytes = shutil.disk_usage(folder).free
            if free_bytes < min_free_bytes:
                raise SandboxBrokenError(
                    f"only {free_bytes / 2**20:.0f} MiB are free in {folder}, expected"
                    f" {min_free_bytes / 2**20:.0f} MiB: no container is started"
                )


def connect() -> Engine:
    """Return the engine that DOCKER_HOST names, else the machine's own.

    Raises:
        SandboxUnavailableError: nobody answers there, or an engine too old.
    """
    named = os.environ.get("DOCKER_HOST", "")
    address, source = (named, "DOCKER_HOST") if named else (_DEFAULT_ADDRESS, "no DOCKER_HOST")
    try:
        _knock(address)
        client = docker.from_env(timeout=_TIMEOUT_S)
        _check_version(client, address=address)
        return Engine(client, address=address)
    except (*_LOST, DockerException, ValueError) as error:
        raise SandboxUnavailableError(
            f"no Docker engine answers at {address} ({source}): {_last_cause(error)}"
        ) from error


def _knock(address: str) -> None:
    """Raise `OSError` when nobody listens at a socket, where the SDK would leave its end open."""
    if address.startswith("unix:"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as near:
            near.settimeout(_PING_TIMEOUT_S)
            near.connect("/" + address.removeprefix("unix:").lstrip("/"))


def reason(error: APIError) -> str:
    """Return in a line why the engine refuses."""
    return " ".join(str(error.explanation or error).split())


def _check_version(client: docker.DockerClient, *, address: str) -> None:
    found = client.api.version()["ApiVersion"]
    if tuple(map(int, found.split("."))) < MIN_API:
        needed = ".".join(map(str, MIN_API))
        raise SandboxUnavailableError(
            f"the Docker engine at {address} is too old: it speaks API {found}, expected {needed}"
            " or later (Docker 20.10)"
        )


def _last_cause(error: BaseException) -> str:
    """Return the innermost of the exceptions that the SDK wraps in one another, in a line."""
    while error.__context__ is not None:
        error = error.__context__
    return " ".join(str(error).split())
