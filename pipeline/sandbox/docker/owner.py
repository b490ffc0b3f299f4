"""Name the process that a container belongs to, and tell later whether it still lives."""

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LABEL = "regrow"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# In /proc/PID/stat after the name: when the process started, in ticks since the boot.
_START_FIELD = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that starts containers.

    Example: `Owner.this()`.
    """

    # One sandbox of the process.
    run: str
    pid: int
    # When it started: a later process may have the same number.
    started: str
    # The boot of a machine, with the namespace that its numbers are counted in.
    host: str

    @classmethod
    def this(cls) -> Self:
        """Name this process."""
        pid = os.getpid()
        return cls(run=uuid.uuid4().hex, pid=pid, started=_started(pid), host=_host())

    def labels(self, *, deadline: float) -> dict[str, str]:
        """Return the labels of a container that nobody needs after a time.

        Args:
            deadline: in seconds since 1970.
        """
        return {
            LABEL: "1",
            f"{LABEL}.run": self.run,
            f"{LABEL}.pid": str(self.pid),
            f"{LABEL}.started": self.started,
            f"{LABEL}.host": self.host,
            f"{LABEL}.deadline": str(int(deadline)),
        }


def is_abandoned(labels: Mapping[str, str], *, now: float) -> bool:
    """Tell whether nobody needs a container any more, as far as can be known here.

    Of a process on this machine we know whether it lives; of one elsewhere, how long it wanted.

    Args:
        labels: of the container.
        now: in seconds since 1970.
    """
    if labels.get(f"{LABEL}.host") == _host():
        pid = labels.get(f"{LABEL}.pid", "")
        return _started(int(pid)) != labels.get(f"{LABEL}.started") if pid.isdecimal() else True
    deadline = labels.get(f"{LABEL}.deadline", "")
    return not deadline.isdecimal() or int(deadline) < now


def _host() -> str:
    return f"{_BOOT.read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"


def _started(pid: int) -> str:
    """Return when a process started; nothing when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # A zombie runs nothing any more.
    return "" if fields[0] in {"Z", "X"} else fields[_START_FIELD]
