"""Look into a running sandbox from outside and say when it uses more than it may."""

import contextlib
import math
import os
import time
from pathlib import Path
from typing import Self

from pipeline.sandbox.protocol import Job, LimitName, Limits
from pipeline.sandbox.tree import used_bytes
from pipeline.sandbox.view import VOLUMES

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What an inode of a tmpfs costs the kernel, however empty the file.
_INODE_BYTES = 2**10
# Looking takes at most one part in so many of the time.
_REST = 10
_MIN_TREE_REST_S = 0.5
# The launcher, which is not the job's.
_FIRST_PID = "1"
# A process may end while it is read.
_GONE = (FileNotFoundError, ProcessLookupError)


class Watch:
    """What one job uses; a context manager.

    It reads the sandbox's own /proc, which lists exactly the processes inside, orphans included,
    and asks the sandbox's file systems how full they are. Both are opened once, from the first
    process, before the job could have moved anything.
    """

    def __init__(self, job: Job) -> None:
        self._limits = job.limits
        self._folders = [
            WrittenFolder(mount.source, limit_bytes=job.limits.disk_bytes)
            for mount in job.mounts
            if mount.mode == "write"
        ]
        self._stack = contextlib.ExitStack()
        self._proc_fd: int | None = None
        self._volumes: list[int] = []
        self._next_s = 0.0
        # CPU seconds of all processes, the ended ones too, as last seen.
        self.cpu_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def is_inside(self) -> bool:
        """Whether there is something to look at yet."""
        return self._proc_fd is not None

    def enter(self, process_fd: int) -> None:
        """Open what there is to look at, by the first process's folder in /proc.

        Raises:
            OSError: the driver may not look into the sandbox.
        """
        with contextlib.suppress(*_GONE):
            root = self._open("root", os.O_PATH, dir_fd=process_fd)
            self._volumes = [self._open(f".{path}", os.O_PATH, dir_fd=root) for path in VOLUMES]
            self._proc_fd = self._open("proc", os.O_RDONLY, dir_fd=root)

    def _open(self, path: str, flags: int, *, dir_fd: int) -> int:
        fd = os.open(path, flags | os.O_DIRECTORY, dir_fd=dir_fd)
        self._stack.callback(os.close, fd)
        return fd

    def exceeded(self) -> LimitName | None:
        """Return the limit that is exceeded; nothing too while a look would cost too much."""
        began_s = time.monotonic()
        if self._proc_fd is None or began_s < self._next_s:
            return None
        limit = self._look(self._proc_fd, self._limits)
        now_s = time.monotonic()
        self._next_s = now_s + _REST * (now_s - began_s)
        return limit

    def _look(self, proc_fd: int, limits: Limits) -> LimitName | None:
        cpu_s, num_processes, memory_bytes = 0.0, 0, 0
        for pid in _pids(proc_fd):
            fields = _stat(proc_fd, pid)
            # proc_pid_stat(5), counted from field 3: user and system time with those of waited-for
            # children, threads, resident pages.
            cpu_s += sum(map(int, fields[11:15])) / _TICKS_PER_S
            if pid != _FIRST_PID:
                num_processes += int(fields[17])
                memory_bytes += int(fields[21]) * _PAGE_BYTES
        self.cpu_s = max(self.cpu_s, cpu_s)
        if cpu_s > limits.cpu_s:
            return "cpu"
        if num_processes > limits.num_processes:
            return "processes"
        # Pages that processes share were counted for each: look closely before a verdict.
        if memory_bytes > limits.memory_bytes < _proportional_bytes(proc_fd):
            return "memory"
        return "disk" if self._disk_bytes() > limits.disk_bytes else None

    def _disk_bytes(self) -> float:
        written = sum(folder.written_bytes() for folder in self._folders)
        return written + sum(map(_volume_bytes, self._volumes))

    def has_overfilled(self) -> bool:
        """Return whether the job, which has ended, left too much in writable mounts."""
        written = sum(folder.written_bytes(at_once=True) for folder in self._folders)
        return written > self._limits.disk_bytes


class WrittenFolder:
    """A writable mount, and how much it has grown."""

    def __init__(self, folder: Path, *, limit_bytes: int) -> None:
        self._folder = folder
        self._before_bytes = used_bytes(folder, enough=math.inf)
        if math.isinf(self._before_bytes):
            raise ValueError(f"expected a folder that can be looked into, got {str(folder)!r}")
        self._enough_bytes = self._before_bytes + limit_bytes
        self._written_bytes = 0.0
        self._next_s = time.monotonic() + _MIN_TREE_REST_S

    def written_bytes(self, *, at_once: bool = False) -> float:
        """Return the growth in bytes; as last seen, unless it is time for another look."""
        began_s = time.monotonic()
        if at_once or began_s >= self._next_s:
            used = used_bytes(self._folder, enough=self._enough_bytes)
            self._written_bytes = max(0.0, used - self._before_bytes)
            now_s = time.monotonic()
            self._next_s = now_s + max(_MIN_TREE_REST_S, _REST * (now_s - began_s))
        return self._written_bytes


def _pids(proc_fd: int) -> list[str]:
    return [name for name in os.listdir(proc_fd) if name.isdecimal()]


def _stat(proc_fd: int, pid: str) -> list[bytes]:
    """Return the fields of a process's stat file from the third on; zeros when it is gone."""
    with contextlib.suppress(*_GONE):
        return _read(proc_fd, f"{pid}/stat").rpartition(b")")[2].split()
    return [b"0"] * 22


def _proportional_bytes(proc_fd: int) -> int:
    """Return the resident memory of all processes, each shared page counted once."""
    total = 0
    for pid in _pids(proc_fd):
        with contextlib.suppress(*_GONE):
            total += _pss_bytes(_read(proc_fd, f"{pid}/smaps_rollup"))
    return total


def _pss_bytes(rollup: bytes) -> int:
    for line in rollup.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(dir_fd: int, path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _volume_bytes(fd: int) -> int:
    """Return what is used of a tmpfs, its inodes included."""
    found = os.statvfs(fd)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    return used + (found.f_files - found.f_ffree) * _INODE_BYTES
