"""The sandbox back end for machines with a container engine: one container for each job."""

import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pipeline.sandbox import process, session, tree, view, wire
from pipeline.sandbox.docker.baking import Baked, bake
from pipeline.sandbox.docker.base import ensure_base
from pipeline.sandbox.docker.container import Container, Spec, create, started
from pipeline.sandbox.docker.engine import Engine, EngineLostError, connect
from pipeline.sandbox.docker.owner import LABEL, Owner
from pipeline.sandbox.docker.pause import Pause
from pipeline.sandbox.docker.reaper import reap, remove
from pipeline.sandbox.docker.upkeep import sweep
from pipeline.sandbox.protocol import (
    GIB,
    MIB,
    Finished,
    Job,
    Mount,
    SandboxBrokenError,
    SandboxStoppedError,
    SandboxUnavailableError,
)

T = TypeVar("T")

# An engine that starts more at once starts each of them later.
_STARTS_PER_CORE = 2
_JITTER_S = 0.05
_MIN_FREE_BYTES = 1 * GIB
# A worker whose driver is not heard of for so long is nobody's.
_WORKER_S = 24 * 3600.0
# Room for the trees of later jobs, as a first guess from that of the first one.
_WORKER_FOLDER_BYTES = 256 * MIB


class Docker:
    """Run each job in a hardened container of its own.

    Example: `open_docker().run(Job(command=("/usr/bin/id",)))`.
    """

    name = "docker"
    # All containers have the same user.
    counts_users = False

    def __init__(
        self,
        engine: Engine,
        *,
        base: str,
        on_pause: Callable[[str], None] | None = None,
        min_free_bytes: int = _MIN_FREE_BYTES,
    ) -> None:
        """Hold on to an engine.

        Args:
            engine: where the containers run.
            base: id of the image that all others are built on.
            on_pause: told in a line when the engine is waited for, and when it is back; logged
                when None.
            min_free_bytes: how much must be free on the disks involved, lest nothing is started.
        """
        self.engine = engine
        self._base = base
        self._min_free_bytes = min_free_bytes
        self._owner = Owner.this()
        self._cache = wire.FileCache()
        self._pause = Pause(engine, say=on_pause)
        self._starts = threading.BoundedSemaphore(_STARTS_PER_CORE * engine.num_cores)
        self._stopped = threading.Event()
        # Running, by key; `stop` may interrupt the thread that changes it.
        self._running: dict[str, Container] = {}
        # What could not be removed because the engine was gone.
        self._left: list[str] = []

    @property
    def address(self) -> str:
        """Where the engine is."""
        return self.engine.address

    def run(self, job: Job) -> Finished:
        """Run one job to its end; when the engine goes away, wait for it and begin again.

        Raises:
            ValueError: the job makes no sense: a relative path, a missing source.
            SandboxStoppedError: `stop` was called before or during the job.
            SandboxBrokenError: the machine, not the job, failed.
        """
        view.check_job(job)
        return self.patiently(lambda: self._run(job))

    def patiently(self, work: Callable[[], T]) -> T:
        """Do something with the engine; when it goes away, wait for it and begin again.

        Raises:
            SandboxStoppedError: `stop` was called before or meanwhile.
        """
        while True:
            self._raise_if_stopped()
            try:
                done = work()
            except EngineLostError:
                self._wait_for_engine()
            else:
                self._raise_if_stopped()
                return done

    def stop(self) -> None:
        """Kill every running job and refuse new ones; any thread may call it."""
        self._stopped.set()
        self._pause.stop()
        for container in list(self._running.values()):
            container.kill()

    def adopt(self, folder: Path) -> None:
        """Make a folder of ours, and all in it, usable by jobs of every back end."""
        tree.adopt(folder, owner=process.HOST_ID if os.geteuid() == 0 else None)

    @contextmanager
    def worker(self, job: Job) -> Iterator[Container]:
        """Start a container for one job after another like this one, and leave nothing of it.

        Raises:
            SandboxStoppedError: `stop` was called.
            SandboxBrokenError: the engine cannot, or is gone.
            OSError: a folder cannot be read.
        """
        folders = {
            path: max(_WORKER_FOLDER_BYTES, 2 * size) for path, size in _folders(job).items()
        }
        with self._transport(job, folders=folders, lifetime_s=_WORKER_S) as container:
            yield container

    def containers(self) -> list[str]:
        """Return the keys of all containers that this sandbox has on the engine.

        Raises:
            EngineLostError, SandboxBrokenError: the engine does not say.
        """
        mine = {"label": f"{LABEL}.run={self._owner.run}"}
        with self.engine.calls("list containers"):
            return [it["Id"] for it in self.engine.api.containers(all=True, filters=mine)]

    def bake(self, mounts: tuple[Mount, ...]) -> Baked:
        """Return the image that jobs with these readable mounts start from."""
        return bake(self.engine, self._base, mounts)

    def _raise_if_stopped(self) -> None:
        if self._stopped.is_set():
            raise SandboxStoppedError("the sandbox was stopped")

    def _run(self, job: Job) -> Finished:
        self._raise_if_stopped()
        try:
            return self._run_once(job)
        except (SandboxBrokenError, OSError) as error:
            self._raise_if_stopped()
            # What broke the connection may have been the engine's end.
            if not self.engine.answers():
                raise EngineLostError(str(error)) from error
            if isinstance(error, SandboxBrokenError):
                raise
            raise SandboxBrokenError(f"the machine cannot run a sandbox: {error}") from error

    def _run_once(self, job: Job) -> Finished:
        folders = _folders(job)
        lifetime_s = job.limits.wall_s
        with self._transport(job, folders=folders, lifetime_s=lifetime_s) as transport:
            talk = session.Session(transport)
            talk.wait_until_ready()
            reply = talk.run(job, cache=self._cache, counts_users=False, is_last=True)
            # The kernel may have ended the job, or another's, for want of memory.
            limit = transport.died_of() if reply.doubts else None
        for mount in job.mounts:
            if mount.mode == "write":
                self.adopt(mount.source)
        return replace(reply.finished, limit=reply.finished.limit or limit)

    @contextmanager
    def _transport(
        self, job: Job, *, folders: Mapping[str, int], lifetime_s: float
    ) -> Iterator[Container]:
        """Start a container for a job and leave nothing of it."""
        self.engine.raise_if_full(self._min_free_bytes)
        spec = Spec(
            image=self.bake(job.mounts).image,
            folders=folders,
            limits=job.limits,
            owner=self._owner,
            lifetime_s=lifetime_s,
        )
        with ExitStack() as stack:
            with self._starts:
                # Starts that come together get in each other's way.
                self._stopped.wait(random.uniform(0, _JITTER_S))  # noqa: S311
                self._raise_if_stopped()
                key = stack.enter_context(self._created(spec))
                container = stack.enter_context(self._started(key))
            yield container

    @contextmanager
    def _created(self, spec: Spec) -> Iterator[str]:
        key = create(self.engine, spec)
        try:
            yield key
        finally:
            self._left.append(key)
            self._tidy()

    @contextmanager
    def _started(self, key: str) -> Iterator[Container]:
        with started(self.engine, key) as container:
            self._running[key] = container
            try:
                if self._stopped.is_set():
                    container.kill()
                yield container
            finally:
                del self._running[key]

    def _tidy(self) -> None:
        """Remove what is left of jobs; what cannot be now, later."""
        while self._left:
            key = self._left.pop()
            try:
                with self.engine.calls("remove a container"):
                    remove(self.engine, key)
            except EngineLostError:
                self._left.append(key)
                return

    def _wait_for_engine(self) -> None:
        self._raise_if_stopped()
        self._pause.wait()
        self._raise_if_stopped()
        self._tidy()


def open_docker(*, on_pause: Callable[[str], None] | None = None) -> Docker:
    """Return the back end for the engine that DOCKER_HOST names, or the machine's own.

    What killed drivers have left behind is removed, and the images that no job needs any more.

    Raises:
        SandboxUnavailableError: no engine answers, or it has no base image and cannot get one.
    """
    engine = connect()
    try:
        docker = Docker(engine, base=ensure_base(engine), on_pause=on_pause)
        reap(engine)
        sweep(engine, now=time.time())
    except (EngineLostError, SandboxBrokenError) as error:
        raise SandboxUnavailableError(str(error)) from error
    return docker


def _folders(job: Job) -> Mapping[str, int]:
    """Return how many bytes the job's writable folders hold at first."""
    found = {}
    for mount in job.mounts:
        if mount.mode != "read":
            size = sum(tree.sizes(mount.source))
            if math.isinf(size):
                raise ValueError(f"expected a folder to look into, got {str(mount.source)!r}")
            found[mount.target] = int(size)
    return found
