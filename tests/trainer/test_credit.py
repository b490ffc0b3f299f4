import doctest
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.samples import episode, reply, segment
from trainer import credit
from trainer.credit import CreditConfig, advantages, effort_penalty
from trainer.records import Episode, Segment

REWARDS = st.floats(-10, 10)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | REWARDS), max_size=12), st.randoms())
def test_rows_in_another_order_have_the_same_advantages_to_the_bit(
    drawn: list[tuple[str, float | None]], shuffler: random.Random
) -> None:
    rows = [episode(group, number, reward) for number, (group, reward) in enumerate(drawn)]
    expected = advantages(rows)
    shuffler.shuffle(rows)
    assert advantages(rows) == expected


@given(st.lists(st.tuples(st.sampled_from("abc"), REWARDS), max_size=12))
def test_a_group_does_not_depend_on_who_else_is_there(drawn: list[tuple[str, float]]) -> None:
    rows = [episode(group, number, reward) for number, (group, reward) in enumerate(drawn)]
    apart = [advantages([row for row in rows if row.group == group]) for group in "abc"]
    assert advantages(rows) == apart[0] | apart[1] | apart[2]


def test_the_group_counts_and_not_the_place_in_the_list() -> None:
    rows = [episode("a", 0, 1.0), episode("b", 0, 5.0), episode("a", 1, 0.0)]
    assert advantages(rows) == {"a.0": 0.5, "a.1": -0.5, "b.0": 0.0}


@given(REWARDS, st.integers(1, 9))
def test_equal_rewards_and_singletons_give_exactly_zero(reward: float, size: int) -> None:
    rows = [episode("a", number, reward) for number in range(size)]
    assert set(advantages(rows).values()) == {0.0}


def test_neither_deviation_nor_length_of_a_group_scales_its_advantages() -> None:
    long = segment(0, spans=[(4, 400)], length=400)
    rows = [episode("a", 0, 0.1, segments=[long]), *(episode("a", i, 0.0) for i in (1, 2, 3))]
    assert advantages(rows)["a.0"] == pytest.approx(0.075)


@given(st.lists(REWARDS, min_size=1, max_size=6), st.integers(1, 4))
def test_what_failed_through_us_is_in_no_baseline_and_in_no_loss(
    rewards: list[float], num_failed: int
) -> None:
    valid = [episode("a", number, reward) for number, reward in enumerate(rewards)]
    failed = [episode("a", 100 + number, None) for number in range(num_failed)]
    assert advantages([*failed, *valid]) == advantages(valid)


def test_an_episode_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"episode a\.0: is there twice"):
        advantages([episode("a", 0, 1.0), episode("a", 0, 1.0)])


def test_a_reward_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"episode a\.0: reward nan, expected a finite number"):
        advantages([episode("a", 0, math.nan)])


@given(st.floats(0, 1e6), st.floats(0.01, 10), st.floats(0, 3))
def test_the_penalty_of_effort_grows_ever_slower(x: float, k: float, q: float) -> None:
    first, second, third = (effort_penalty(x + step, k, q) for step in (0.0, 1.0, 2.0))
    slack = 1e-9 * max(1.0, abs(third))
    assert first <= second <= third
    assert third - second <= second - first + slack


@given(st.floats(0, 1e4), st.floats(0.01, 10))
def test_the_penalty_at_q_1_is_the_limit_of_its_neighbours(x: float, k: float) -> None:
    assert effort_penalty(x, k, 1.0) == pytest.approx(effort_penalty(x, k, 1 - 1e-7), rel=1e-5)


@given(st.floats(0, 1e4), st.floats(0.01, 10), st.sampled_from([0.0, 0.3, 0.5, 2.0]))
def test_the_penalty_is_the_formula_of_composer_2(x: float, k: float, q: float) -> None:
    formula = ((1 + k * x) ** (1 - q) - 1) / (k * (1 - q))
    assert effort_penalty(x, k, q) == pytest.approx(formula, rel=1e-9, abs=1e-9)


def test_of_two_that_solve_it_the_one_with_less_effort_is_better() -> None:
    rows = [
        episode("a", 0, 1.0, segments=[segment(0, spans=[(4, 20)], length=20)]),
        episode("a", 1, 1.0, segments=[segment(0, spans=[(4, 12)], length=20)]),
    ]
    config = CreditConfig(penalty=0.5, k=1.0, q=0.0, per_sampled_token=0.01)
    found = advantages(rows, config=config)
    assert found == {"a.0": pytest.approx(-0.02), "a.1": pytest.approx(0.02)}


def test_each_kind_of_effort_has_its_own_weight() -> None:
    made = segment(0, spans=[(4, 9)], length=20)
    replies = (reply(4, 9, num_calls=3), reply(12, 12, num_calls=0))
    row = one_episode(
        Segment(ids=made.ids, sampled=made.sampled, logprobs=made.logprobs, replies=replies)
    )
    weights = {"per_sampled_token": 0.0} | dict.fromkeys(
        ["per_shown_token", "per_call", "per_reply"], 0.0
    )
    found = {
        name: credit.effort(row, config=CreditConfig(**weights | {name: 1.0})) for name in weights
    }
    assert found == {
        "per_sampled_token": 5,
        "per_shown_token": 15,
        "per_call": 3,
        "per_reply": 2,
    }


def one_episode(made: Segment) -> Episode:
    assert np.array_equal(np.flatnonzero(made.sampled), np.arange(4, 9))
    return episode("a", 0, 1.0, segments=[made])


def test_the_examples_of_the_docstrings_are_true() -> None:
    assert doctest.testmod(credit).failed == 0
