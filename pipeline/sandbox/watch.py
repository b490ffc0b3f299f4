"""Look into a running sandbox from outside and say when it uses more than it may."""

import contextlib
import itertools
import math
import os
import time
from pathlib import Path
from typing import Self

from pipeline.sandbox.protocol import Job, LimitName, Limits
from pipeline.sandbox.tree import sizes
from pipeline.sandbox.view import VOLUMES

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What an inode of a tmpfs costs the kernel, however empty the file.
_INODE_BYTES = 2**10
# Looking takes at most one part in so many of the time.
_REST = 10
# A walk through a writable mount: entries at a time, and seconds between two walks.
_WALK_STEPS = 1000
_TREE_REST_S = 0.5
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
            WrittenFolder(mount.source) for mount in job.mounts if mount.mode == "write"
        ]
        self._stack = contextlib.ExitStack()
        self._proc_fd: int | None = None
        self._volumes: list[int] = []
        self._next_s = 0.0
        # CPU seconds of all processes, the ended ones too, as last seen.
        self.cpu_s = 0.0
        # The most of all processes that was seen at once.
        self.peak_memory_bytes = 0
        self.peak_processes = 0

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
        # Pages that processes share were counted for each: look closely before a verdict.
        if memory_bytes > limits.memory_bytes:
            memory_bytes = _proportional_bytes(proc_fd)
        self.cpu_s = max(self.cpu_s, cpu_s)
        self.peak_processes = max(self.peak_processes, num_processes)
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory_bytes)
        if cpu_s > limits.cpu_s:
            return "cpu"
        if num_processes > limits.num_processes:
            return "processes"
        if memory_bytes > limits.memory_bytes:
            return "memory"
        return "disk" if self._disk_bytes() > limits.disk_bytes else None

    def _disk_bytes(self) -> float:
        for folder in self._folders:
            folder.walk_on()
        written = sum(folder.written_bytes for folder in self._folders)
        return written + sum(map(_volume_bytes, self._volumes))

    def has_overfilled(self) -> bool:
        """Return whether the job, which has ended, left too much in a writable mount."""
        return any(folder.has_grown_beyond(self._limits.disk_bytes) for folder in self._folders)


class WrittenFolder:
    """A writable mount, and how much it has grown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before_bytes = sum(sizes(folder))
        if math.isinf(self._before_bytes):
            raise ValueError(f"expected a folder that can be looked into, got {str(folder)!r}")
        # Growth in bytes as last seen.
        self.written_bytes = 0.0
        # When the next walk may begin, or the present one go on; what that has found so far.
        self._next_s = time.monotonic() + _TREE_REST_S
        self._walk = sizes(folder)
        self._found_bytes = -self._before_bytes

    def walk_on(self) -> None:
        """Take some steps of a walk through the folder, unless it is too early for another walk."""
        if time.monotonic() < self._next_s:
            return
        steps = list(itertools.islice(self._walk, _WALK_STEPS))
        self._found_bytes += sum(steps)
        self.written_bytes = max(self.written_bytes, self._found_bytes)
        if len(steps) < _WALK_STEPS:
            self.written_bytes = max(0.0, self._found_bytes)
            self._next_s = time.monotonic() + _TREE_REST_S
            self._walk, self._found_bytes = sizes(self._folder), -self._before_bytes

    def has_grown_beyond(self, limit_bytes: int) -> bool:
        """Walk through the whole folder, or until it is clear that it has grown too much."""
        totals = itertools.accumulate(sizes(self._folder))
        return any(total - self._before_bytes > limit_bytes for total in totals)


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
