"""Run jobs by `docker exec` in containers that stay: what a warm worker is measured against."""

import io
import socket
import struct
import tarfile
import threading
import time
from pathlib import Path
from typing import IO

from pipeline.sandbox import view
from pipeline.sandbox.docker.baking import bake
from pipeline.sandbox.docker.base import ensure_base
from pipeline.sandbox.docker.engine import connect
from pipeline.sandbox.docker.relay import plain_socket
from pipeline.sandbox.process import USER_ID
from pipeline.sandbox.protocol import Finished, Job

# Results come on standard error, so that one stream of the engine's carries everything.
_SCRIPT = 'cd "$1"; shift; exec "$@" 3>&2 2>&1'
_HEADER = struct.Struct(">BxxxL")
_RESULTS = 2


class ContainerExec:
    """One container a thread; jobs come by exec and leave the tree as they make it.

    No sandbox for real work: what one job leaves behind the next one sees.
    """

    name = "docker exec"

    def __init__(self) -> None:
        self._engine = connect()
        self._base = ensure_base(self._engine)
        self._own = threading.local()
        self._keys: list[str] = []

    def run(self, job: Job) -> Finished:
        """Run a job in this thread's container, which the first job decides."""
        if not hasattr(self._own, "key"):
            self._own.key = self._start(job)
        began_s = time.monotonic()
        variables = dict(job.variables) | {"REGROW_RESULTS_FD": "3", "HOME": view.HOME}
        command = ("sh", "-c", _SCRIPT, "sh", job.workdir, *job.command)
        exit_code, parts = self._exec(command, stdin=job.stdin, variables=variables)
        return Finished(
            exit_code=exit_code,
            limit=None,
            output=b"".join(data for number, data in parts if number != _RESULTS),
            results=b"".join(data for number, data in parts if number == _RESULTS),
            cpu_s=0.0,
            wall_s=time.monotonic() - began_s,
        )

    def stop(self) -> None:
        """Remove the containers."""
        while self._keys:
            self._engine.api.remove_container(self._keys.pop(), force=True)

    def adopt(self, folder: Path) -> None:
        """Leave a folder as it is: its files are copied."""

    def _start(self, job: Job) -> str:
        """Start a container with the job's mounts, and lay out its writable folders."""
        api = self._engine.api
        image = bake(self._engine, self._base, job.mounts).image
        written = [mount for mount in job.mounts if mount.mode != "read"]
        folders = dict.fromkeys(
            ("/tmp", view.HOME, *(mount.target for mount in written)), f"uid={USER_ID},exec"
        )
        made = api.create_container(
            image,
            entrypoint=["sleep", "infinity"],
            user=f"{USER_ID}:{USER_ID}",
            host_config=api.create_host_config(
                network_mode="none", read_only=True, tmpfs=folders, cap_drop=["ALL"]
            ),
        )
        self._keys.append(made["Id"])
        api.start(made["Id"])
        self._own.key = made["Id"]
        for mount in written:
            packed = io.BytesIO()
            _pack(packed, mount.source)
            self._exec(("tar", "-x", "-C", mount.target), stdin=packed.getvalue(), variables={})
        return str(made["Id"])

    def _exec(
        self, command: tuple[str, ...], *, stdin: bytes, variables: dict[str, str]
    ) -> tuple[int, list[tuple[int, bytes]]]:
        api = self._engine.api
        made = api.exec_create(self._own.key, list(command), stdin=True, environment=variables)
        attached = api.exec_start(made["Id"], socket=True)
        stream = plain_socket(attached)
        stream.sendall(stdin)
        stream.shutdown(socket.SHUT_WR)
        with stream.makefile("rb") as file:
            parts = list(iter(lambda: _read_part(file), (0, b"")))
        attached.close()
        return int(api.exec_inspect(made["Id"])["ExitCode"]), parts


def _read_part(file: IO[bytes]) -> tuple[int, bytes]:
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return 0, b""
    number, num_bytes = _HEADER.unpack(header)
    return number, file.read(num_bytes)


def _pack(file: IO[bytes], folder: Path) -> None:
    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = USER_ID
        return member

    with tarfile.open(fileobj=file, mode="w") as tar:
        for path in folder.iterdir():
            tar.add(path, arcname=path.name, filter=owned)
