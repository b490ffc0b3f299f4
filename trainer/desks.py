"""Open the Tasks of a run folder as a world: nothing else of the trainer knows the factory."""

import logging
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from pipeline.cache import cache_folder
from pipeline.desk import Folders, reopen_desk
from pipeline.images import restore_images
from pipeline.index import package_index
from pipeline.sandbox.choose import SandboxName, open_sandbox
from pipeline.sandbox.protocol import Sandbox
from pipeline.sandbox.scratch import own_scratch
from pipeline.task.grade import Desk
from pipeline.task.manifest import ShardError, check_files
from pipeline.task.record import Task
from pipeline.task.shards import TaskPlace, index_tasks
from trainer.interrupt import stopped_first
from trainer.task_env import TaskConfig, TaskWorld

_LOG = logging.getLogger(__name__)


@contextmanager
def open_world(
    run_folder: Path, *, config: TaskConfig, seed: int, cache: Path | None = None
) -> Iterator[tuple[TaskWorld, tuple[str, ...]]]:
    """Give the Tasks of a run as a world, with their ids, for the time of a block.

    After it no sandbox runs, and nothing is left of what was laid out. A signal that ends the block
    stops the sandbox first, so that no thread waits for a job.

    Args:
        run_folder: that `regrow generate` wrote.
        config: of the world.
        seed: wordings are drawn from it.
        cache: of trees and environments; by default the one that all commands share.

    Raises:
        ShardError: the folder is not as its writer left it, or has no Task.
        SandboxUnavailableError: no sandbox works here; the message says what would help.
    """
    places = _places(run_folder)
    cache = cache or cache_folder()
    with own_scratch(cache / "scratch") as scratch, _opened(config.sandbox) as sandbox:
        folders = Folders(
            run=run_folder.absolute(), cache=cache, index=package_index(), scratch=scratch
        )
        desks = Desks(folders, sandbox=sandbox)
        yield TaskWorld(places, open_desk=desks.open, config=config, seed=seed), tuple(places)


def _places(run_folder: Path) -> dict[str, TaskPlace]:
    if not run_folder.is_dir():
        raise ShardError(f"{run_folder}: no such folder, expected the output of `regrow generate`")
    check_files(run_folder)
    places = index_tasks(run_folder)
    if not places:
        raise ShardError(f"{run_folder}: 0 tasks, expected at least one")
    return places


@contextmanager
def _opened(name: SandboxName) -> Iterator[Sandbox]:
    sandbox = open_sandbox(name, warm=True)
    try:
        with stopped_first(sandbox.stop):
            yield sandbox
    finally:
        sandbox.stop()


class Desks:
    """Owns the desks of a run: each is opened when a Task first needs it, and stays."""

    def __init__(self, folders: Folders, *, sandbox: Sandbox) -> None:
        self._folders, self._sandbox = folders, sandbox
        self._desks: dict[Hashable, Desk] = {}
        # Ids of Tasks whose images are there.
        self._ready: set[str] = set()
        # One environment is built at a time.
        self._lock = Lock()

    def open(self, task: Task) -> Desk:
        """Return the desk where a Task is tried; any thread may call it.

        Raises:
            InstallError, IndexUnreachableError, ValueError, OSError: the machine cannot, or has
                another Snapshot.
            SandboxStoppedError, SandboxBrokenError: its images cannot be made.
        """
        key = (task.snapshot, task.environment, task.repo.test)
        with self._lock:
            if key not in self._desks:
                self._desks[key] = reopen_desk(
                    task.snapshot,
                    task.environment,
                    command=task.repo.test,
                    folders=self._folders,
                    sandbox=self._sandbox,
                )
            if task.id not in self._ready:
                self._restore(task, self._desks[key])
            return self._desks[key]

    def _restore(self, task: Task, desk: Desk) -> None:
        if line := restore_images(task, desk=desk):
            _LOG.warning(line)
        self._ready.add(task.id)
