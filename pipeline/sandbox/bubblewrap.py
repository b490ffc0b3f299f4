"""The sandbox back end for machines without a container engine: one bwrap for each job."""

import contextlib
import math
import os
import platform
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pipeline.sandbox import orphans, process, seccomp, tree, view
from pipeline.sandbox.channels import Channels
from pipeline.sandbox.pipe import Pipe
from pipeline.sandbox.piped import Piped
from pipeline.sandbox.protocol import (
    Finished,
    Job,
    LimitName,
    Mount,
    SandboxBrokenError,
    SandboxStoppedError,
)
from pipeline.sandbox.watch import Watch

_TICK_S = 0.05


class Bubblewrap:
    """Run each job in namespaces, a file system and a user of its own.

    Example: `Bubblewrap(bwrap_path()).run(Job(command=("/usr/bin/id",)))`.
    """

    name = "bubblewrap"
    # A job's user is of its own namespace.
    counts_users = True

    def __init__(self, bwrap: Path) -> None:
        """Sweep what a driver that was killed has left, and be ready for jobs."""
        orphans.end_orphans(bwrap, marks=process.MARKS)
        self._bwrap = bwrap
        self._is_root = os.geteuid() == 0
        self._filter = seccomp.program(platform.machine())
        # Guards the two below; `stop` may interrupt the thread that holds it.
        self._lock = threading.RLock()
        self._running: set[process.Process] = set()
        self._is_stopped = False

    def run(self, job: Job) -> Finished:
        """Run one job to its end.

        Raises:
            ValueError: the job makes no sense: a relative path, a missing source.
            SandboxStoppedError: `stop` was called before or during the job.
            SandboxBrokenError: the machine, not the job, failed.
        """
        view.check_job(job)
        self._raise_if_stopped()
        try:
            finished = self._run(job)
        except OSError as error:
            self._raise_if_stopped()
            raise SandboxBrokenError(f"the machine cannot run a sandbox: {error}") from error
        except SandboxBrokenError:
            self._raise_if_stopped()
            raise
        self._raise_if_stopped()
        return finished

    def stop(self) -> None:
        """Kill every running job and refuse new ones; any thread may call it."""
        with self._lock:
            self._is_stopped = True
            for running in self._running:
                running.kill()

    def adopt(self, folder: Path) -> None:
        """Make a folder of ours, and all in it, usable by jobs (owner and modes)."""
        tree.adopt(folder, owner=process.HOST_ID if self._is_root else None)

    def _raise_if_stopped(self) -> None:
        with self._lock:
            if self._is_stopped:
                raise SandboxStoppedError("the sandbox was stopped")

    def _run(self, job: Job) -> Finished:
        with Watch(job) as watch, Channels(job) as channels:
            began_s = time.monotonic()
            with self._counted(self._start(job, channels)) as running:
                channels.connect(running.ended_fd)
                limit = _supervise(job, running, channels, watch, began_s=began_s)
            channels.drain()
            if limit is None and channels.is_over:
                limit = "output"
            said = _said(channels)
            # A quick job fills a folder, and fails of it, before anybody has looked.
            is_full = int(said.get("used", 0)) > job.limits.disk_bytes
            if limit is None and (is_full or watch.has_overfilled()):
                limit = "disk"
            return Finished(
                exit_code=_exit_code(said, channels) if limit is None else -signal.SIGKILL,
                limit=limit,
                output=bytes(channels.output.data),
                results=bytes(channels.results.data),
                cpu_s=max(running.cpu_s, watch.cpu_s),
                wall_s=time.monotonic() - began_s,
                collected=_collected(said, channels) if limit is None else None,
                peak_memory_bytes=watch.peak_memory_bytes,
                peak_processes=watch.peak_processes,
            )

    @contextlib.contextmanager
    def worker(self, job: Job) -> Iterator[Piped]:
        """Start a `serve.py` for jobs like this one, and leave nothing of it.

        The thread that starts it has to wait for it; see `process`.
        """
        with Pipe() as stdin, Pipe() as output, Pipe() as error:
            ends = {"stdin": stdin.reader, "output": output.writer, "error": error.writer}
            with self._counted(self._start_worker(job, **ends)) as running:
                for pipe in (output, error):
                    pipe.close(pipe.writer)
                stdin.close(stdin.reader)
                yield Piped(running, stdin=stdin.writer, output=output.reader, error=error.reader)

    def _start_worker(self, job: Job, **ends: int) -> process.Process:
        with _memory_file(self._filter) as rules:
            arguments = [*view.worker_arguments(job), "--seccomp", str(rules)]
            made = [mount for mount in job.mounts if mount.mode != "read"]
            server = [view.base_python(), "-I", "-S", view.SERVER]
            return process.start(
                [str(self._bwrap), *arguments, "--", *server, *self._owned(made)],
                as_root=self._is_root,
                pass_fds=(rules,),
                **ends,
            )

    @contextlib.contextmanager
    def _counted(self, started: process.Process) -> Iterator[process.Process]:
        """Count what was started among the running until everything of it is gone."""
        with started as running:
            with self._lock:
                self._running.add(running)
                if self._is_stopped:
                    running.kill()
            try:
                yield running
            finally:
                with self._lock:
                    self._running.remove(running)

    def _owned(self, mounts: Iterable[Mount]) -> list[str]:
        """Return the folders that are made as root and have to become the job's."""
        return [view.HOME, *(mount.target for mount in mounts)] if self._is_root else []

    def _start(self, job: Job, channels: Channels) -> process.Process:
        intakes = (channels.status, channels.results, channels.collected)
        writers = [intake.writer for intake in intakes]
        with _memory_file(self._filter) as rules, _memory_file(self._plan(job)) as plan:
            descriptors = [str(fd) for fd in (plan, *writers)]
            launcher = [view.base_python(), "-I", "-S", view.LAUNCHER, *descriptors]
            arguments = [*view.arguments(job), "--seccomp", str(rules)]
            return process.start(
                [str(self._bwrap), *arguments, "--", *launcher],
                as_root=self._is_root,
                stdin=channels.stdin,
                output=channels.output.writer,
                pass_fds=(plan, *writers, rules),
            )

    def _plan(self, job: Job) -> bytes:
        """Return what the launcher is told; see there."""
        limits = job.limits
        numbers = (
            int(self._is_root),
            # A process may reserve more than it touches.
            2 * limits.memory_bytes,
            # The second line of defence, for a process that outruns our looking.
            math.ceil(limits.cpu_s) + 1,
            limits.file_bytes,
            # One above, so that running into it shows; without root the launcher counts as well.
            limits.num_processes + (1 if self._is_root else 2),
        )
        folders = self._owned(mount for mount in job.mounts if mount.mode == "overlay")
        variables = [
            f"{name}={text}" for name, text in (view.VARIABLES | dict(job.variables)).items()
        ]
        texts = [",".join(map(str, numbers)), job.workdir, job.collect, str(limits.results_bytes)]
        texts += [str(len(folders)), *folders, str(len(variables)), *variables, *job.command]
        return b"".join(os.fsencode(text) + b"\0" for text in texts)


@contextlib.contextmanager
def _memory_file(data: bytes) -> Iterator[int]:
    """Yield a descriptor to read the data from."""
    fd = os.memfd_create("regrow")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _supervise(
    job: Job, running: process.Process, channels: Channels, watch: Watch, *, began_s: float
) -> LimitName | None:
    """Serve a job until nothing of it is left; return the limit that ended it, if one did."""
    limit: LimitName | None = None
    while not running.has_ended():
        channels.pump(_TICK_S)
        if running.proc_fd is not None and not watch.is_inside and channels.status.data:
            watch.enter(running.proc_fd)
        if limit is None:
            limit = _exceeded(job, channels, watch, wall_s=time.monotonic() - began_s)
            if limit is not None:
                running.kill()
    return limit


def _exceeded(job: Job, channels: Channels, watch: Watch, *, wall_s: float) -> LimitName | None:
    if channels.is_over:
        return "output"
    return watch.exceeded() or ("wall" if wall_s > job.limits.wall_s else None)


def _said(channels: Channels) -> dict[str, str]:
    """Return what the launcher said, by the first word of each line."""
    lines = channels.status.data.decode("utf-8", "replace").splitlines()
    return dict(line.partition(" ")[::2] for line in lines)


def _collected(said: Mapping[str, str], channels: Channels) -> bytes | None:
    """Return the file that was asked for; nothing unless all of it came."""
    data = bytes(channels.collected.data)
    return data if said.get("collected") == str(len(data)) else None


def _exit_code(said: Mapping[str, str], channels: Channels) -> int:
    """Return the exit status of the command.

    Raises:
        SandboxBrokenError: the launcher said nothing, or that it could not start the command.
    """
    if "failed" in said:
        raise SandboxBrokenError(f"the sandbox did not start: {said['failed']}")
    if "ended" in said:
        return int(said["ended"])
    if "ready" in said:
        raise SandboxBrokenError("the sandbox was killed from outside")
    lines = channels.output.data.decode("utf-8", "replace").splitlines()
    raise SandboxBrokenError(f"the sandbox did not start: {lines[-1] if lines else 'no word'}")
