"""Stream the Tasks of a run for ever, in a seeded order that can be resumed anywhere."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from pipeline.task.record import Task
from pipeline.task.shards import index_tasks, read_task


def stream_tasks(run_folder: Path, *, seed: int, start: int = 0) -> Iterator[tuple[int, Task]]:
    """Yield `(position, Task)` from position `start` on, epoch after epoch.

    Each epoch has every Task once, in an order drawn from the seed, the epoch and the ids, so it
    is the same whatever the number of shards. Only ids are held in memory; a Task is read when
    its turn comes. To resume after position `p`, start at `p + 1`.

    Raises:
        ShardError: the run directory is not as its writer left it.
        ValueError: the run has no Tasks, or `start` is negative.
    """
    places = index_tasks(run_folder)
    if not places or start < 0:
        raise ValueError(f"{run_folder}: {len(places)} tasks, start {start}; expected >= 1, >= 0")
    first_epoch, skipped = divmod(start, len(places))
    return (
        (epoch * len(places) + offset, read_task(places[task_id]))
        for epoch in count(first_epoch)
        for offset, task_id in enumerate(_order(places, seed=seed, epoch=epoch))
        if epoch > first_epoch or offset >= skipped
    )


def prompt_at(position: int, ids: tuple[str, ...], *, seed: int) -> str:
    """Return the id at a position of the stream, without reading any Task."""
    epoch, offset = divmod(position, len(ids))
    return _order(ids, seed=seed, epoch=epoch)[offset]


def _order(ids: Iterable[str], *, seed: int, epoch: int) -> list[str]:
    return sorted(ids, key=lambda task_id: _draw(f"{seed} {epoch} {task_id}"))


def _draw(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
