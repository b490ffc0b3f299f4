"""Let the ranks of one run agree: sums over all of them, and waits that name who is late."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from pydantic import Field
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn import Parameter

from trainer.settings import Settings


class RanksConfig(Settings):
    """How ranks wait for one another."""

    # Longest wait for the others, at each point where all must meet.
    timeout_s: float = Field(default=1800.0, gt=0)


class RankError(RuntimeError):
    """Other ranks did not come to where this one waits; one line that names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """The processes of a run: this one, how many there are, and where each leaves word.

    Example: `Ranks()` is a run of one process, for which every sum is what it is given.
    """

    # From 0.
    rank: int = 0
    world: int = 1
    # Where each rank writes what it waits for; None in a run of one process.
    store: Store | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes what is written once."""
        return self.rank == 0

    def has_share(self, number: int) -> bool:
        """Tell whether the group of that number in its step is this rank's work."""
        return number % self.world == self.rank

    def meet(self, what: str) -> None:
        """Wait until every rank is here.

        Raises:
            RankError: some did not come in time.
        """
        self.sum_numbers({}, what)

    def sum_numbers(self, numbers: Mapping[str, float], what: str) -> dict[str, float]:
        """Return the sum of each number over all ranks; a rank may lack some of the names.

        `what` names the sum in errors: `step 3, metrics`.

        Raises:
            RankError: some rank did not come in time.
        """
        everyone: list[Mapping[str, float]] = [numbers] * self.world
        if self.world > 1:
            with self.waiting_for(what):
                dist.all_gather_object(everyone, dict(numbers))
        names = dict.fromkeys(name for one in everyone for name in one)
        return {name: sum(one.get(name, 0.0) for one in everyone) for name in names}

    def sum_gradients(self, parameters: Iterable[Parameter], what: str) -> None:
        """Sum each gradient over all ranks; a parameter without one has a gradient of zeros.

        The parameters must be the same, in the same order, on every rank.

        Raises:
            RankError: some rank did not come in time.
        """
        for parameter in parameters:
            if parameter.grad is None:
                # Left out, it would stand still on some layouts and move on others.
                parameter.grad = torch.zeros_like(parameter)
            if self.world > 1:
                with self.waiting_for(what):
                    dist.all_reduce(parameter.grad)

    @contextmanager
    def waiting_for(self, what: str) -> Iterator[None]:
        """Leave word of what this rank waits for; name who is late if the block fails.

        Raises:
            RankError: torch could not wait to the end.
        """
        store = self.store
        assert store is not None, "a run of one process waits for nobody"
        try:
            store.set(_key(self.rank), what)
            yield
        except RankError:
            # What it waited for within this wait says more.
            raise
        except RuntimeError as error:
            why = str(error).partition("\n")[0]
            raise RankError(f"{what}: {self._complaint(store, what)}: {why}") from error

    def _complaint(self, store: Store, what: str) -> str:
        words = {rank: _last_word(store, rank) for rank in range(self.world)}
        late = [f"rank {rank} ({word})" for rank, word in words.items() if word != what]
        if not late:
            return f"rank {self.rank} of {self.world} lost touch with the others, who are there too"
        return f"rank {self.rank} of {self.world} waits in vain for {', '.join(late)}"


def join_ranks(config: RanksConfig) -> Ranks:
    """Meet the other processes that torchrun started; without torchrun there are none.

    Raises:
        RankError: they cannot be met.
    """
    if "WORLD_SIZE" not in os.environ or os.environ["WORLD_SIZE"] == "1":
        return Ranks()
    # Else NCCL ends the process where a wait is too long, and nobody is named.
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    wait = timedelta(seconds=config.timeout_s)
    try:
        store, rank, world = next(rendezvous("env://", timeout=wait))
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    except (RuntimeError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise RankError(f"the ranks of the run cannot meet: {why}") from error
    return meet_at(store, rank=rank, world=world, config=config)


def meet_at(store: Store, *, rank: int, world: int, config: RanksConfig) -> Ranks:
    """Form a group with the other ranks that come to a store.

    Raises:
        RankError: they did not come in time.
    """
    ranks = Ranks(rank=rank, world=world, store=PrefixStore("regrow", store))
    # Of each tensor's own device: a model may be on the CPU where there are GPUs.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with ranks.waiting_for("the start"):
        dist.init_process_group(
            backend,
            store=store,
            rank=rank,
            world_size=world,
            timeout=timedelta(seconds=config.timeout_s),
        )
    return ranks


def part() -> None:
    """Leave the other ranks, at the end of a run."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _key(rank: int) -> str:
    return f"waits for/{rank}"


def _last_word(store: Store, rank: int) -> str:
    """Return what a rank last waited for."""
    try:
        return store.get(_key(rank)).decode() if store.check([_key(rank)]) else "never seen"
    except RuntimeError:
        return "its word is lost"
