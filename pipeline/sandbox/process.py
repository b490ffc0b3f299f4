"""Start bwrap in user namespaces of its own, and end it with everything inside."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Self

from pipeline.sandbox.pipe import Pipe

# The job's user, inside.
USER_ID = 1000
# The same user on the host when the driver is root: nobody there, and mapped in most containers.
HOST_ID = 61000

# What the launcher needs to make itself the job's user; it has none of them when the job starts.
_CAPABILITIES = ("CAP_CHOWN", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID")
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "cgroup-try")
# Arguments of every bwrap of ours.
MARKS = ("--as-pid-1", "--die-with-parent", "--new-session", "--hostname", "regrow")


class Process:
    """One bwrap and the first process inside; a context manager that leaves nothing alive.

    bwrap dies with the *thread* that started it, so the thread that starts it has to wait for it.
    Other threads may call `kill`.
    """

    def __init__(self, bwrap: "subprocess.Popen[bytes]") -> None:
        self._bwrap = bwrap
        # Readable once bwrap has ended.
        self.ended_fd = _pidfd(bwrap)
        self._first_fd: int | None = None
        # The folder in /proc of the first process inside; nothing before bwrap has made it.
        self.proc_fd: int | None = None
        # CPU seconds of everything that was reaped, once it has ended.
        self.cpu_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bwrap.returncode is None:
            self.kill()
            self._reap(0)
        for fd in (self.ended_fd, self._first_fd, self.proc_fd):
            if fd is not None:
                os.close(fd)

    def adopt_first(self, pid: int) -> None:
        """Hold on to the first process inside, by its pid on the host."""
        self.proc_fd = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY)
        self._first_fd = os.pidfd_open(pid)

    def kill(self) -> None:
        """Kill everything inside.

        The first process takes the others with it and bwrap ends when all are gone, so that
        nothing is left when `has_ended` says so.
        """
        fd = self.ended_fd if self._first_fd is None else self._first_fd
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Return whether bwrap, and everything inside with it, is gone."""
        if self._bwrap.returncode is None:
            self._reap(os.WNOHANG)
        return self._bwrap.returncode is not None

    def _reap(self, options: int) -> None:
        pid, status, usage = os.wait4(self._bwrap.pid, options)
        if pid:
            self._bwrap.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_s = usage.ru_utime + usage.ru_stime


def start(
    command: list[str],
    *,
    as_root: bool,
    stdin: int,
    output: int,
    error: int | None = None,
    pass_fds: tuple[int, ...],
) -> Process:
    """Start bwrap and see it into its user namespace.

    Code must not run as root of the host. As root we therefore map two users ourselves: root for
    the mounts and the launcher, and a nobody for the job. As anybody else bwrap maps the caller.

    Args:
        command: path of bwrap, its arguments, the command inside.
        as_root: whether the caller is root.
        stdin: descriptor that becomes standard input.
        output: descriptor that becomes standard output, and error as well unless that is given.
        error: descriptor that becomes standard error.
        pass_fds: descriptors that keep their numbers.

    Raises:
        OSError: the machine cannot start another process or map its users.
    """
    with Pipe() as info, Pipe() as gate:
        bwrap = subprocess.Popen(
            [command[0], *_arguments(info.writer, gate.reader if as_root else None), *command[1:]],
            stdin=stdin,
            stdout=output,
            stderr=output if error is None else error,
            pass_fds=(info.writer, gate.reader, *pass_fds),
            env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
            cwd="/",
        )
        with contextlib.ExitStack() as stack:
            process = stack.enter_context(Process(bwrap))
            info.close(info.writer)
            pid = _first_pid(info.reader)
            if pid is not None:
                process.adopt_first(pid)
            if pid is not None and as_root:
                _map_users(pid)
                os.write(gate.writer, b"\n")
            stack.pop_all()
    return process


def _arguments(info: int, gate: int | None) -> list[str]:
    """Return bwrap's arguments for namespaces and users."""
    arguments = [f"--unshare-{name}" for name in _NAMESPACES]
    arguments += [*MARKS, "--info-fd", str(info), "--cap-drop", "ALL"]
    if gate is None:
        return [*arguments, "--uid", str(USER_ID), "--gid", str(USER_ID)]
    for capability in _CAPABILITIES:
        arguments += ["--cap-add", capability]
    return [*arguments, "--userns-block-fd", str(gate)]


def _pidfd(bwrap: "subprocess.Popen[bytes]") -> int:
    """Return a handle to wait by; without one nobody could watch the job, so it may not run."""
    try:
        return os.pidfd_open(bwrap.pid)
    except OSError:
        bwrap.kill()
        bwrap.wait()
        raise


def _first_pid(info: int) -> int | None:
    """Return what bwrap says of its child, or nothing when it gave up before it had one."""
    with os.fdopen(os.dup(info), "rb") as file:
        text = file.read()
    return int(json.loads(text)["child-pid"]) if text else None


def _map_users(pid: int) -> None:
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{pid}/{name}").write_text(f"0 0 1\n{USER_ID} {HOST_ID} 1\n", "ascii")
