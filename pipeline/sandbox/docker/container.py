"""Make the hardened container that a job, or one job after another, runs in."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from docker.types import LogConfig, Ulimit

from pipeline.sandbox import view
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.layers import INSIDE
from pipeline.sandbox.docker.owner import Owner
from pipeline.sandbox.docker.stream import Stream
from pipeline.sandbox.process import USER_ID
from pipeline.sandbox.protocol import MIB, LimitName, Limits

_MAX_OPEN_FILES = 1024
# For the first process and its like, beside what the job may use.
_OWN_MEMORY_BYTES = 128 * MIB
_OWN_PROCESSES = 8
# On top of what is measured inside, so that a full folder shows as a limit there.
_SLACK_BYTES = 2 * MIB
# What an inode counts for; see `pipeline.sandbox.watch`.
_INODE_BYTES = 2**10
# A driver that waits for its turn may take so much longer than its jobs.
_GRACE_S = 3600.0
# A machine out of memory shall pick a job before the driver.
_OOM_SCORE = 500
# What the kernel shows of the machine, and what would outlive a job.
_HIDDEN = ("/sys", "/dev/mqueue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a container is made from.

    Example: `Spec(image="sha256:…", folders={"/work": 2**20}, limits=Limits(), …)`.
    """

    # Id of the image with everything that is only read.
    image: str
    # Bytes that each writable folder holds at first, by path; besides the usual ones.
    folders: Mapping[str, int]
    limits: Limits
    owner: Owner
    # Seconds that it may be needed.
    lifetime_s: float


class Container:
    """A container whose first process waits for frames, as a transport of a session."""

    def __init__(self, engine: Engine, *, key: str, stream: Stream) -> None:
        self._engine = engine
        self._key = key
        self._stream = stream
        self.send = stream.send
        self.recv = stream.recv

    def kill(self) -> None:
        """End it with everything inside; any thread may call it, more than once.

        The first process ends when it is left alone, and what does not is killed with the removal.
        """
        self._stream.shut()

    def died_of(self) -> LimitName | None:
        """Return `memory` when the kernel has ended a process for want of it.

        The engine knows once the first process has ended, so it must be about to.
        """
        with self._engine.calls("look at a container"):
            self._engine.api.wait(self._key)
            state = self._engine.api.inspect_container(self._key)["State"]
        return "memory" if state["OOMKilled"] else None

    def complaint(self) -> str:
        """Return in one line what it said on standard error, or nothing."""
        lines = self._stream.complaint.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def create(engine: Engine, spec: Spec) -> str:
    """Make a container and return its key.

    Raises:
        EngineLostError: the engine is gone.
        SandboxBrokenError: the engine cannot.
    """
    with engine.calls("make a container"):
        return _create(engine, spec)


@contextmanager
def started(engine: Engine, key: str) -> Iterator[Container]:
    """Start a container and give the hold on its first process.

    Raises:
        EngineLostError: the engine is gone.
        SandboxBrokenError: the engine cannot.
    """
    wanted = dict.fromkeys(("stdin", "stdout", "stderr", "stream"), 1)
    with engine.calls("attach to a container"):
        stream = Stream(engine.api.attach_socket(key, params=wanted))
    with closing(stream):
        with engine.calls("start a container"):
            engine.api.start(key)
        yield Container(engine, key=key, stream=stream)


def _create(engine: Engine, spec: Spec) -> str:
    made = engine.api.create_container(
        spec.image,
        entrypoint=[view.base_python(), "-I", "-S", f"{INSIDE}/serve.py"],
        command=[],
        hostname="regrow",
        user=f"{USER_ID}:{USER_ID}",
        working_dir="/",
        stdin_open=True,
        # An engine that ends has nothing to wait for.
        stop_signal="SIGKILL",
        labels=spec.owner.labels(deadline=time.time() + spec.lifetime_s + _GRACE_S),
        host_config=_host_config(engine, spec),
        use_config_proxy=False,
    )
    return str(made["Id"])


def _host_config(engine: Engine, spec: Spec) -> object:
    """Return the hardening: no network, no rights, nothing writable but capped memory."""
    limits = spec.limits
    first_bytes = sum(spec.folders.values())
    memory_bytes = limits.memory_bytes + limits.disk_bytes + first_bytes + _OWN_MEMORY_BYTES
    return engine.api.create_host_config(
        network_mode="none",
        # Else the engine would show what the machine asks.
        dns=["127.0.0.1"],
        read_only=True,
        tmpfs=_folders(spec),
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        ipc_mode="none",
        pids_limit=limits.num_processes + _OWN_PROCESSES,
        # Equal, so that nothing is swapped.
        mem_limit=memory_bytes,
        memswap_limit=memory_bytes,
        oom_score_adj=_OOM_SCORE,
        ulimits=[
            Ulimit(name="nofile", soft=_MAX_OPEN_FILES, hard=_MAX_OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="msgqueue", soft=0, hard=0),
        ],
        log_config=LogConfig(type="none"),
    )


def _folders(spec: Spec) -> dict[str, str]:
    """Return the options of each tmpfs: what can be written, and what is hidden."""
    sizes = {**dict.fromkeys(view.TEMPORARY, 0), **spec.folders}
    found = {
        path: _options(first_bytes + spec.limits.disk_bytes, mode=view.TEMPORARY.get(path, "0755"))
        for path, first_bytes in sizes.items()
    }
    return found | dict.fromkeys(_HIDDEN, "ro,nosuid,nodev,noexec,size=4k,mode=555")


def _options(size_bytes: int, *, mode: str) -> str:
    size_bytes += _SLACK_BYTES
    return (
        f"rw,exec,nosuid,nodev,size={size_bytes},nr_inodes={size_bytes // _INODE_BYTES},"
        f"mode={mode},uid={USER_ID},gid={USER_ID}"
    )
