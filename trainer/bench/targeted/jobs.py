"""Do work in processes of one thread each; what is done already is not done again."""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

import torch
from rich.console import Console

NUM_PROCESSES = 2


class Work(Protocol):
    """A piece of work that leaves one file."""

    def path(self, folder: Path) -> Path:
        """Return the file."""

    def do(self, folder: Path) -> str:
        """Do it; return a line about it."""


def do_all(work: Iterable[Work], folder: Path, *, say: Console) -> None:
    """Do what has left no file, the first first; say a line when one is done."""
    todo = [each for each in work if not each.path(folder).exists()]
    # Forked, because a worker that imports torch anew takes longer than a quick run; and set
    # before, because threads do not survive a fork.
    torch.set_num_threads(1)
    with ProcessPoolExecutor(NUM_PROCESSES, mp_context=get_context("fork")) as pool:
        futures = [pool.submit(each.do, folder) for each in todo]
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                say.print(f"{number}/{len(todo)} {future.result()}", highlight=False)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
