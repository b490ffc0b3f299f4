"""Do work in processes of one thread each; what is done already is not done again."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import torch
from rich.console import Console

from trainer.bench.targeted.worker import Said, Work, Worker, with_news

NUM_PROCESSES = 2


def do_all(
    work: Iterable[Work], folder: Path, *, say: Console, num_processes: int = NUM_PROCESSES
) -> None:
    """Do what has left no file, the first first; say what the workers say.

    No worker is left, however this ends; what they have left in the folder is there next time.

    Raises:
        NotMeasuredError: a piece of work cannot be done, or a worker was killed.
    """
    todo = [each for each in work if not each.path(folder).exists()]
    num, num_done = len(todo), 0
    # Set before the forks, because threads do not survive them.
    torch.set_num_threads(1)
    workers: list[Worker] = []
    with ExitStack() as at_last:
        while todo or workers:
            while todo and len(workers) < num_processes:
                workers.append(Worker(todo.pop(0), folder))
                at_last.callback(workers[-1].kill)
            for said in _hear(workers):
                num_done += said.is_last
                number = f"{num_done}/{num} " if said.is_last else ""
                say.print(number + said.text, highlight=False, soft_wrap=True, markup=False)


def _hear(workers: list[Worker]) -> Iterator[Said]:
    """Wait for workers, and return what they have said; those that have ended leave the list."""
    for worker in with_news(workers):
        if said := worker.hear():
            yield said
        else:
            workers.remove(worker)
