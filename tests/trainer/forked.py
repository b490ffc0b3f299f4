"""Run a function on several ranks at once: forked processes that meet over gloo."""

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any

import cloudpickle
import torch
from torch.distributed.rendezvous import rendezvous

from trainer.ranks import Ranks, RanksConfig, meet_at, part

# The first time the server imports torch, on a busy machine.
WAIT_S = 300.0


def on_ranks(world: int, work: Callable[[Ranks], Any], *, timeout_s: float = 60.0) -> list[Any]:
    """Return what the work came to on each rank; an error is returned as its text."""
    # Of a server that has no threads: those of a test run may hold locks that a fork never frees.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["trainer.loop", "trainer.parallel", "trainer.tiny"])
    answers = context.Queue()
    packed = cloudpickle.dumps(work)
    with tempfile.TemporaryDirectory() as folder:
        arguments = (Path(folder) / "store", world, packed, timeout_s, answers)
        processes = [context.Process(target=_run, args=(it, *arguments)) for it in range(world)]
        for process in processes:
            process.start()
        try:
            found = dict(answers.get(timeout=WAIT_S) for _ in processes)
        except Empty:
            raise AssertionError("some rank never answered") from None
        finally:
            for process in processes:
                process.kill()
                process.join()
    return [found[rank] for rank in range(world)]


def _run(rank: int, path: Path, world: int, packed: bytes, timeout_s: float, answers: Any) -> None:
    torch.set_num_threads(1)
    config = RanksConfig(timeout_s=timeout_s)
    try:
        store, *_ = next(rendezvous(f"file://{path}?rank={rank}&world_size={world}"))
        ranks = meet_at(store, rank=rank, world=world, config=config)
        work: Callable[[Ranks], Any] = cloudpickle.loads(packed)
        answers.put((rank, work(ranks)))
        part()
    except (
        AssertionError,
        ArithmeticError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        traceback.print_exc()
        answers.put((rank, f"{type(error).__name__}: {error}"))
