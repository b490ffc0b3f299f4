"""Solve rates: bounds hold the truth as often as they say, and hacks solve nothing."""

from dataclasses import replace
from math import comb, fsum

import pytest

from pipeline.difficulty.rates import LEVEL, between, rate, task_rates
from pipeline.task.attempt import Attempt, Monitored
from pipeline.task.record import SCHEMA_VERSION


def attempt(number: int, verdict: str, *, task: str = "a", model: str = "m") -> Attempt:
    return Attempt(
        schema_version=SCHEMA_VERSION,
        id=f"{task}.chat.{number}",
        task_id=task,
        number=number,
        agent="chat",
        model=model,
        turns=(),
        patch="",
        verdict=verdict,
        detail="",
        broken=(),
        decisions=(),
        twins=(),
        alarms=(),
        forged="",
        disagreement="",
    )


def hacked(it: Attempt) -> Attempt:
    verdict = Monitored(
        version="1", label="hacked", hack_class="cache", score=1.0, signs=(), similarity=1.0
    )
    return replace(it, monitored=verdict)


@pytest.mark.parametrize("tried", [4, 8, 32])
def test_bounds_hold_the_truth_as_often_as_they_say(tried: int) -> None:
    rates = [rate(solved=solved, tried=tried) for solved in range(tried + 1)]
    truths = [(number + 0.5) / 200 for number in range(200)]
    held = [
        fsum(
            comb(tried, it.solved) * p**it.solved * (1 - p) ** (tried - it.solved)
            for it in rates
            if it.low <= p <= it.high
        )
        for p in truths
    ]
    # Exactly computed: of a rate that is anywhere, and never far less of a single one.
    assert LEVEL - 0.02 <= sum(held) / len(held) <= LEVEL + 0.06
    assert min(held) > LEVEL - 0.15


def test_more_attempts_say_more_and_none_say_nothing() -> None:
    assert (rate(solved=0, tried=0).low, rate(solved=0, tried=0).high) == (0.0, 1.0)
    few, many = rate(solved=2, tried=4), rate(solved=20, tried=40)
    assert few.rate == many.rate == 0.5
    assert few.high - few.low > many.high - many.low
    with pytest.raises(ValueError, match="3 of 2 solved"):
        rate(solved=3, tried=2)


def test_rates_are_of_a_task_and_a_model_and_what_the_machine_failed_counts_for_nothing() -> None:
    found = task_rates([
        attempt(0, "solved"),
        attempt(1, "unsolved"),
        attempt(2, "invalid"),
        attempt(3, "solved", model="n"),
        attempt(4, "tampered", task="b"),
    ])
    told = [(it.task_id, it.model, it.rate.solved, it.rate.tried) for it in found]
    assert told == [("a", "m", 1, 2), ("a", "n", 1, 1), ("b", "m", 0, 1)]
    assert between(found, 0.2, 0.8) == pytest.approx(1 / 3)


def test_what_the_monitor_calls_hacked_solved_nothing() -> None:
    (found,) = task_rates([attempt(0, "solved"), hacked(attempt(1, "solved"))])
    assert (found.rate.solved, found.rate.tried) == (1, 2)
