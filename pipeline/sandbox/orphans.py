"""End what a driver that was killed can leave of bwrap: a child that waits for its parent.

bwrap forks the first process of a sandbox, which waits until bwrap has mapped its users, and only
then asks the kernel to die with its parent. When bwrap dies in between, nobody wakes the child.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What matters of one process."""

    pid: int
    parent: int
    arguments: tuple[bytes, ...]
    # How many namespaces of processes it is in, as seen from here.
    depth: int


def end_orphans(bwrap: Path, *, marks: tuple[str, ...]) -> int:
    """Kill first processes of sandboxes whose bwrap is gone; return how many there were.

    One that has started its command is another program already, and dies with its parent.

    Args:
        bwrap: binary that started them.
        marks: arguments of all that are ours.
    """
    found = {it.pid: it for it in _processes()}
    own = found.get(os.getpid())
    wanted = {os.fsencode(mark) for mark in marks}
    ours = {
        it.pid: it
        for it in found.values()
        if it.arguments[0] == os.fsencode(bwrap) and wanted <= set(it.arguments)
    }
    orphans = [it for it in ours.values() if own and it.depth > own.depth and it.parent not in ours]
    return sum(map(_end, orphans))


def _processes() -> Iterator[_Seen]:
    for path in _PROC.iterdir():
        if path.name.isdecimal():
            # It may end while it is read, and other users may hide theirs.
            with suppress(OSError):
                yield _look(path)


def _look(path: Path) -> _Seen:
    status = path.joinpath("status").read_text("utf-8", "replace")
    fields = dict(line.partition(":\t")[::2] for line in status.splitlines())
    return _Seen(
        pid=int(path.name),
        parent=int(fields["PPid"]),
        arguments=tuple(path.joinpath("cmdline").read_bytes().split(b"\0")),
        depth=len(fields.get("NSpid", "").split()),
    )


def _end(orphan: _Seen) -> bool:
    """Kill an orphan; another process may have its number by now, so look again."""
    try:
        fd = os.pidfd_open(orphan.pid)
    except OSError:
        return False
    try:
        if _look(_PROC / str(orphan.pid)) != orphan:
            return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
