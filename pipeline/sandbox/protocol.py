"""What every sandbox back end promises: one job in, what it did within its limits out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

LimitName = Literal["wall", "cpu", "memory", "processes", "disk", "output"]
MountMode = Literal["read", "overlay", "write"]

MIB = 2**20
GIB = 2**30


class SandboxUnavailableError(RuntimeError):
    """No sandbox works on this machine; the message says why and what would help."""


class SandboxStoppedError(RuntimeError):
    """The run is being stopped: the job was killed or not started, nothing was learnt."""


class SandboxBrokenError(RuntimeError):
    """The machine failed the job (no space, no memory to fork); nothing was learnt of the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a job may use before it is killed.

    Example: `Limits(wall_s=30)`.
    """

    # Seconds from start to the kill of everything in the sandbox.
    wall_s: float = 600.0
    # CPU seconds of all processes together.
    cpu_s: float = 600.0
    # Resident memory of all processes together; also the address space of each, times two.
    memory_bytes: int = 4 * GIB
    # Processes and threads alive at once.
    num_processes: int = 256
    # Largest single file.
    file_bytes: int = 512 * MIB
    # What is written to overlays, temporary folders and writable mounts together.
    disk_bytes: int = 1 * GIB
    # Standard output and error together, read to the end or killed.
    output_bytes: int = 16 * MIB
    # What may come back over the results pipe.
    results_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder of the host as the job sees it.

    Example: `Mount(source=Path("/…/tree"), target="/work", mode="overlay")`.
    """

    # Absolute and existing.
    source: Path
    # Absolute path inside.
    target: str
    # `read`: read-only; `overlay`: writable, writes vanish with the job; `write`: writes stay.
    mode: MountMode = "read"
    # Content id: equal keys promise equal content, so that a back end may keep a copy under it.
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command to run in a sandbox of its own.

    Example: `Job(command=("/env/bin/python", "-V"), mounts=(Mount(...),), workdir="/work")`.
    """

    command: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()
    # Absolute path inside, below a mount.
    workdir: str = "/"
    # Its environment, besides HOME, LANG, LC_ALL, PATH, TMPDIR, TZ and REGROW_RESULTS_FD.
    variables: tuple[tuple[str, str], ...] = ()
    limits: Limits = Limits()
    # Fed to standard input, then closed.
    stdin: bytes = b""
    # Absolute path inside of a file to bring back once everything of the job is dead.
    collect: str = ""
    # Modules that a warm worker imports once, before it forks for each such job; the command must
    # then be a Python script. Empty: never served warm.
    preload: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    r"""What a job did.

    Example: `Finished(exit_code=0, limit=None, output=b"Python 3.11.7\\n", …)`.
    """

    # Exit status, negative for a signal; meaningless when a limit ended the job.
    exit_code: int
    # The limit that ended the job, if one did.
    limit: LimitName | None
    # Standard output and error in order of arrival, at most `output_bytes`.
    output: bytes
    # What the job wrote to the file descriptor named by the variable REGROW_RESULTS_FD.
    results: bytes
    # CPU seconds of all its processes.
    cpu_s: float
    wall_s: float
    # Content of `collect`; None when there is no such regular file, or it is larger than
    # `results_bytes`.
    collected: bytes | None = None
    # The most that was seen at once; 0 when nothing was seen.
    peak_memory_bytes: int = 0
    peak_processes: int = 0


class Sandbox(Protocol):
    """Run untrusted code: no network, no root, limits on everything."""

    # `bubblewrap`, as in `--sandbox`.
    name: str

    def run(self, job: Job) -> Finished:
        """Run one job to its end.

        Raises:
            SandboxStoppedError: `stop` was called before or during the job.
            SandboxBrokenError: the machine, not the job, failed.
        """

    def stop(self) -> None:
        """Kill every running job within a second and refuse new ones; any thread may call it."""

    def adopt(self, folder: Path) -> None:
        """Make a folder of ours, and all in it, usable by jobs (owner and modes)."""
