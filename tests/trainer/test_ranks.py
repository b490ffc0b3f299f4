import time

import pytest
import torch
from torch.nn import Parameter

from tests.trainer.forked import on_ranks
from trainer.ranks import Ranks


def test_a_run_of_one_process_sums_nothing_and_waits_for_nobody() -> None:
    ranks = Ranks()
    parameter = Parameter(torch.ones(2))
    ranks.sum_gradients([parameter], "here")
    ranks.meet("here")
    assert ranks.sum_numbers({"a": 1.5}, "here") == {"a": 1.5}
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [0.0, 0.0]
    assert ranks.is_first
    assert all(map(ranks.has_share, range(3)))


@pytest.mark.parametrize("world", [2, 4])
def test_numbers_and_gradients_are_summed_over_all_ranks(world: int) -> None:
    def work(ranks: Ranks) -> tuple[dict[str, float], list[list[float]]]:
        mine, idle = Parameter(torch.zeros(2)), Parameter(torch.zeros(1))
        if ranks.rank != 1:
            mine.grad = torch.full((2,), float(ranks.rank))
        ranks.sum_gradients([mine, idle], "step 0, gradients")
        numbers = {"tokens": 10.0, f"of/{ranks.rank}": 1.0}
        sums = ranks.sum_numbers(numbers, "step 0, metrics")
        return sums, [it.grad.tolist() for it in (mine, idle) if it.grad is not None]

    total = float(sum(rank for rank in range(world) if rank != 1))
    expected = {"tokens": 10.0 * world} | {f"of/{rank}": 1.0 for rank in range(world)}
    for sums, gradients in on_ranks(world, work):
        assert sums == expected
        assert gradients == [[total, total], [0.0]]


def test_every_group_is_the_work_of_one_rank() -> None:
    ranks = [Ranks(rank=rank, world=4) for rank in range(4)]
    for number in range(10):
        assert sum(it.has_share(number) for it in ranks) == 1


def test_a_wait_that_is_too_long_names_who_is_late_and_where() -> None:
    def work(ranks: Ranks) -> str:
        if ranks.rank == 2:
            ranks.meet("step 6, metrics")
            time.sleep(9)
            return "slept"
        ranks.meet("step 6, metrics")
        ranks.meet("step 7, gradients")
        return "met"

    first, second, third = on_ranks(3, work, timeout_s=5.0)
    assert third == "slept"
    named = "RankError: step 7, gradients: rank {} of 3 waits in vain for rank 2 (step 6, metrics)"
    # Who gives up first closes its connections, which the other notices.
    assert first.startswith(named.format(0)) or second.startswith(named.format(1))
    assert first.startswith("RankError: step 7, gradients: rank 0 of 3 ")
    assert second.startswith("RankError: step 7, gradients: rank 1 of 3 ")
