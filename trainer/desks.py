"""Open the desks of Tasks: the one place where the trainer knows how the factory keeps them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from pipeline.cache import cache_folder
from pipeline.commands.scratch import own_scratch
from pipeline.desk import Folders, reopen_desk
from pipeline.index import package_index
from pipeline.sandbox.protocol import Sandbox
from pipeline.task.grade import Desk
from pipeline.task.record import Task

OpenDesk = Callable[[Task], Desk]


@contextmanager
def open_desks(
    run_folder: Path, *, sandbox: Sandbox, cache: Path | None = None
) -> Iterator[OpenDesk]:
    """Give an opener of desks that threads may share, for the time of a block.

    The opener raises what `reopen_desk` does when the machine fails.

    Args:
        run_folder: of the factory; it has the Snapshots beside the shards.
        sandbox: where the Tasks' code runs.
        cache: of trees and environments; by default the one that all commands share.
    """
    cache = cache or cache_folder()
    with own_scratch(cache / "scratch") as scratch:
        folders = Folders(
            run=run_folder.absolute(), cache=cache, index=package_index(), scratch=scratch
        )
        yield desk_opener(folders, sandbox=sandbox)


def desk_opener(folders: Folders, *, sandbox: Sandbox) -> OpenDesk:
    """Return an opener that opens each desk once; Tasks of one Snapshot share it."""
    desks: dict[tuple[object, ...], Desk] = {}
    lock = Lock()

    def open_desk(task: Task) -> Desk:
        key = (task.snapshot, task.environment, task.repo.test)
        # Two threads must not build one environment at a time.
        with lock:
            if key not in desks:
                desks[key] = reopen_desk(
                    task.snapshot,
                    task.environment,
                    command=task.repo.test,
                    folders=folders,
                    sandbox=sandbox,
                )
            return desks[key]

    return open_desk
