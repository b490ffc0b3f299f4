"""Serve test runs from sandboxes that stay, each with an interpreter that is already warm."""

import os
import queue
import threading
from collections import Counter
from collections.abc import Hashable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

from pipeline.sandbox import session, view, wire
from pipeline.sandbox.protocol import (
    Finished,
    Job,
    Mount,
    Sandbox,
    SandboxBrokenError,
)

# Seconds to wait for a worker that ends.
_FAREWELL_S = 5.0
# Runs after which a worker has to go, whatever speaks for it.
_MOST_RUNS = 200
# A worker that fails after fewer was not worth its start; so many of those, and a kind has none.
_FEW_RUNS, _MOST_STRIKES = 5, 3


class Nursery(Sandbox, Protocol):
    """A back end that can also start sandboxes that stay."""

    # Whether the job's user is of the sandbox's own, so that the kernel can count its processes.
    counts_users: bool

    def worker(self, job: Job) -> AbstractContextManager[session.Transport]:
        """Start a `serve.py` for jobs like this one, and leave nothing of it.

        Like `run`, it is ended by `stop`. The thread that starts it is the one that ends it.

        Raises:
            OSError: the machine cannot.
            SandboxBrokenError: the machine cannot.
        """


class Warm:
    """Run jobs that preload modules in workers that stay, all others afresh; a context manager.

    Whatever speaks against a worker retires it, and a job that a worker has failed runs afresh.

    Example: `Warm(open_sandbox("bubblewrap")).run(Job(command=…, preload=("pytest",)))`.
    """

    def __init__(self, inner: Nursery, *, max_workers: int | None = None) -> None:
        self.name = inner.name
        self._inner = inner
        self._max_workers = max_workers or 2 * (os.cpu_count() or 1)
        self._cache = wire.FileCache()
        # Guards the rest; `stop` may interrupt the thread that holds it.
        self._lock = threading.RLock()
        # Those without a job, the one that has been so for longest first.
        self._idle: list[_Worker] = []
        # Those that were told to go and may still be there.
        self._leaving: list[_Worker] = []
        self._num_alive = 0
        self._strikes: Counter[Hashable] = Counter()
        self._is_stopped = False

    @property
    def inner(self) -> Nursery:
        """The back end that the workers live in."""
        return self._inner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, job: Job) -> Finished:
        """Run one job to its end.

        Raises:
            ValueError: the job makes no sense: a relative path, a missing source.
            SandboxStoppedError: `stop` was called before or during the job.
            SandboxBrokenError: the machine, not the job, failed.
        """
        view.check_job(job)
        kind = _kind(job)
        worker = self._hire(kind, job) if kind is not None else None
        if worker is None:
            return self._inner.run(job)
        reply = worker.run(job)
        self._release(worker, reply)
        # The back end says that it is stopped, when it is.
        if reply is None or reply.doubts or not reply.was_told or self._is_stopped:
            return self._inner.run(job)
        return reply.finished

    def stop(self) -> None:
        """Kill every running job and refuse new ones; any thread may call it."""
        self._is_stopped = True
        self._inner.stop()
        self.close()

    def close(self) -> None:
        """End the workers that have no job, and see them gone."""
        with self._lock:
            while self._idle:
                self._retire(self._idle.pop())
            leaving, self._leaving = self._leaving, []
        for worker in leaving:
            worker.join(_FAREWELL_S)

    def adopt(self, folder: Path) -> None:
        """Make a folder of ours, and all in it, usable by jobs (owner and modes)."""
        self._inner.adopt(folder)

    def _hire(self, kind: Hashable, job: Job) -> "_Worker | None":
        """Return a worker for a job: one that waits, or a new one; nothing when all are busy."""
        with self._lock:
            if self._is_stopped or self._strikes[kind] >= _MOST_STRIKES:
                return None
            for worker in reversed(self._idle):
                if worker.kind == kind:
                    self._idle.remove(worker)
                    return worker
            if self._num_alive >= self._max_workers:
                if not self._idle:
                    return None
                self._retire(self._idle.pop(0))
            self._num_alive += 1
        return _Worker(self._inner, job, kind=kind, cache=self._cache)

    def _release(self, worker: "_Worker", reply: session.Reply | None) -> None:
        """Let a worker wait for another job, or retire it on any doubt."""
        is_fit = reply is not None and _is_clean(reply) and worker.num_runs < _MOST_RUNS
        with self._lock:
            if is_fit and not self._is_stopped:
                self._idle.append(worker)
                return
            self._retire(worker)
            if reply is None and worker.num_runs < _FEW_RUNS:
                self._strikes[worker.kind] += 1

    def _retire(self, worker: "_Worker") -> None:
        worker.retire()
        self._num_alive -= 1
        self._leaving = [other for other in self._leaving if other.is_alive()] + [worker]


def _is_clean(reply: session.Reply) -> bool:
    """Tell whether nothing speaks against the worker that a job was run by."""
    return reply.was_told and not reply.doubts and reply.finished.limit is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A job for a worker, and where its answer goes: nothing when the worker failed."""

    job: Job
    answer: "Future[session.Reply | None]"


class _Worker:
    """One sandbox that stays, and the thread that it lives and dies with."""

    def __init__(self, inner: Nursery, job: Job, *, kind: Hashable, cache: wire.FileCache) -> None:
        self.kind = kind
        self.num_runs = 0
        self._inner = inner
        self._cache = cache
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._takes_jobs = True
        # It must not keep a driver from ending that forgot to stop; its sandbox ends with it.
        self._thread = threading.Thread(target=self._live, args=(job,), daemon=True)
        self._thread.start()

    def run(self, job: Job) -> session.Reply | None:
        """Run a job; return nothing when the worker, not the job, failed."""
        task = _Task(job=job, answer=Future())
        with self._lock:
            if not self._takes_jobs:
                return None
            self._tasks.put(task)
        self.num_runs += 1
        return task.answer.result()

    def retire(self) -> None:
        """End it once it has done what it is doing."""
        self._tasks.put(None)

    def is_alive(self) -> bool:
        """Tell whether something of it is left."""
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        """Wait until nothing of it is left."""
        self._thread.join(timeout_s)

    def _live(self, job: Job) -> None:
        try:
            with self._inner.worker(job) as transport:
                self._work(transport)
        except (OSError, RuntimeError):
            pass  # the back end's own kinds; whoever still waits is told so below
        finally:
            with self._lock:
                self._takes_jobs = False
            while not self._tasks.empty():
                if (task := self._tasks.get()) is not None:
                    task.answer.set_result(None)

    def _work(self, transport: session.Transport) -> None:
        talk = session.Session(transport)
        while (task := self._tasks.get()) is not None:
            reply = self._serve(talk, task.job)
            task.answer.set_result(reply)
            if reply is None:
                return

    def _serve(self, talk: session.Session, job: Job) -> session.Reply | None:
        try:
            if talk.wait_until_ready():
                return None
            return talk.run(
                job,
                cache=self._cache,
                counts_users=self._inner.counts_users,
                is_last=False,
            )
        except (OSError, SandboxBrokenError):
            return None


def _kind(job: Job) -> Hashable | None:
    """Return what jobs must have in common to share a worker; nothing for one that cannot.

    A job must run a script, leave nothing in a folder of the host, and have its hashes fixed.
    """
    reads = [mount for mount in job.mounts if mount.mode == "read"]
    targets = [PurePosixPath(mount.target) for mount in job.mounts if mount.mode == "overlay"]
    is_nested = any(one in other.parents for one in targets for other in targets)
    is_script = len(job.command) > 1 and job.command[1].endswith(".py")
    has_hashes = "PYTHONHASHSEED" in dict(job.variables)
    writes = len(reads) + len(targets) < len(job.mounts)
    if not job.preload or writes or is_nested or not is_script or not has_hashes:
        return None
    limits = (job.limits.memory_bytes, job.limits.disk_bytes, job.limits.num_processes)
    parts = (*map(_content, reads),), (*targets,), limits
    return (job.command[0], job.preload, job.variables, *parts)


def _content(mount: Mount) -> Hashable:
    """Return what tells a mount from others: its content id, else the state of its folder."""
    if mount.key:
        return mount.target, mount.key
    with os.scandir(mount.source) as found:
        inner = [(it.name, it.stat(follow_symlinks=False)) for it in found]
    states = [(name, it.st_ino, it.st_mtime_ns, it.st_size) for name, it in inner]
    return mount.target, str(mount.source), tuple(sorted(states))
