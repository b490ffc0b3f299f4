import pytest
import torch
from torch import Tensor

from tests.trainer.bench.targeted.careless import Careless
from trainer.bench.targeted.demonstrations import Noise
from trainer.bench.targeted.play import Rollouts, play
from trainer.bench.targeted.world import (
    DONE,
    MALFORMED,
    NOT_FOUND,
    NUM_SUFFIXES,
    SUFFIXES,
    Prompts,
    draw_prompts,
    draw_tools,
    reminder,
    result_of,
    right_call,
)
from trainer.seeds import generator

FAULTLESS = Noise(wrong_name=0, wrong_argument=0)


def some_prompts(num: int = 16) -> Prompts:
    return draw_prompts(num, turns_per_goal=1.75, draw=generator(0, "prompts"))


def played(noise: Noise) -> Rollouts:
    return play(Careless(noise, draw=generator(0, "replies")), some_prompts())


def test_a_listed_tool_is_found_another_is_not_and_anything_else_is_malformed() -> None:
    prompts = some_prompts(1)
    right_13 = right_call(prompts, torch.tensor([0]))
    other_suffix_13 = right_13.clone()
    listed = prompts.tools_BK2[0, :, 1].tolist()
    suffixes = range(SUFFIXES, SUFFIXES + NUM_SUFFIXES)
    other_suffix_13[0, 1] = next(suffix for suffix in suffixes if suffix not in listed)
    assert result_of(right_13, prompts).tolist() == [DONE]
    assert result_of(other_suffix_13, prompts).tolist() == [NOT_FOUND]
    assert result_of(right_13.flip(1), prompts).tolist() == [MALFORMED]


def test_tools_goals_and_their_number_vary_with_the_episode() -> None:
    prompts = some_prompts(64)
    assert len(prompts.tools_BK2.flatten(1).unique(dim=0)) > 60
    assert set(prompts.num_goals_B.tolist()) == {8, 9, 10, 11, 12}
    assert (prompts.num_turns_B == (1.75 * prompts.num_goals_B).ceil()).all()


def test_who_makes_no_mistake_needs_as_many_calls_as_there_are_goals_and_is_rewarded() -> None:
    rollouts = played(FAULTLESS)
    assert (rollouts.rewards_B == 1).all()
    assert (rollouts.is_played_BR.sum(1) == rollouts.prompts.num_goals_B).all()
    assert not rollouts.is_error_BR.any()


def test_a_wrong_argument_is_no_error_and_costs_the_reward() -> None:
    rollouts = played(Noise(wrong_name=0, wrong_argument=1))
    assert not rollouts.is_error_BR.any()
    assert (rollouts.rewards_B == 0).all()


def test_a_wrong_name_is_an_error_and_costs_a_turn() -> None:
    rollouts = played(Noise(wrong_name=0.5, wrong_argument=0))
    met = rollouts.rewards_B == 1
    assert met.any()
    assert not met.all()
    num_calls_B, num_errors_B = rollouts.is_played_BR.sum(1), rollouts.is_error_BR.sum(1)
    assert ((num_calls_B - num_errors_B)[met] == rollouts.prompts.num_goals_B[met]).all()
    assert (num_calls_B[~met] == rollouts.prompts.num_turns_B[~met]).all()


def test_a_reminder_names_the_tools_and_nothing_else() -> None:
    tools_BK2 = draw_tools(8, draw=generator(1, "tools"))
    hints_BH = reminder(tools_BK2, draw=generator(1, "hints"))

    def pairs(row: Tensor) -> set[tuple[int, ...]]:
        return {tuple(pair) for pair in row.reshape(-1, 2).tolist()}

    for tools_K2, hint_H in zip(tools_BK2, hints_BH, strict=True):
        assert pairs(hint_H[1:]) == pairs(tools_K2)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_same_draws_give_the_same_episodes(share: float) -> None:
    noise = Noise(wrong_name=share)
    assert torch.equal(played(noise).tokens_BT, played(noise).tokens_BT)
