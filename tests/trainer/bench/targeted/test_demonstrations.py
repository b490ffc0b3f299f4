import torch
from torch import Tensor

from trainer.bench.targeted.branches import read, replies_of
from trainer.bench.targeted.demonstrations import Lesson, Noise, hinted_turns, spoilt
from trainer.bench.targeted.play import Rollouts, play
from trainer.bench.targeted.policy import Policy, PolicyConfig
from trainer.bench.targeted.world import (
    NUM_TYPES,
    STEMS,
    STEMS_PER_TYPE,
    SUFFIXES,
    draw_prompts,
    right_call,
)
from trainer.seeds import generator

MANY = 20_000


def right_calls() -> Tensor:
    prompts = draw_prompts(MANY, turns_per_goal=1.0, draw=generator(0, "prompts"))
    return right_call(prompts, torch.zeros(MANY, dtype=torch.long))


def a_lesson(policy: Policy, *, shown: range, noise: Noise) -> Rollouts:
    prompts = draw_prompts(6, turns_per_goal=2.0, draw=generator(0, "prompts"))
    draw = generator(0, "replies")
    return play(Lesson(policy, prompts, noise=noise, shown=shown, draw=draw), prompts)


def a_policy() -> Policy:
    torch.manual_seed(0)
    return Policy(PolicyConfig(num_layers=2, num_heads=2, width=16, hidden=16))


def test_as_many_names_are_wrong_as_the_noise_says_and_half_of_these_are_habits() -> None:
    right_B3 = right_calls()
    noise = Noise(wrong_name=0.4, habit=0.5, wrong_argument=0)
    replies_B3 = spoilt(right_B3, noise.wrong_name, noise=noise, draw=generator(0, "noise"))
    is_wrong_B = (replies_B3 != right_B3).any(1)
    assert abs(float(is_wrong_B.float().mean()) - 0.4) < 0.02
    types_B = (right_B3[:, 0] - STEMS) // STEMS_PER_TYPE
    is_habit_B = (replies_B3[:, 0] == STEMS + STEMS_PER_TYPE * types_B) & (
        replies_B3[:, 1] == SUFFIXES + types_B
    )
    assert abs(float(is_habit_B[is_wrong_B].float().mean()) - 0.5) < 0.03
    assert (replies_B3[:, 2] == right_B3[:, 2]).all()


def test_wrong_names_are_of_the_right_type_and_have_any_other_stem() -> None:
    right_B3 = right_calls()
    noise = Noise(wrong_name=1.0, habit=0.0)
    replies_B3 = spoilt(right_B3, 1.0, noise=noise, draw=generator(0, "noise"))
    types = [(calls[:, 0] - STEMS) // STEMS_PER_TYPE for calls in (right_B3, replies_B3)]
    assert torch.equal(*types)
    assert len(types[0].unique()) == NUM_TYPES
    others_B = (replies_B3[:, 0] - right_B3[:, 0]) % STEMS_PER_TYPE
    shares = others_B.bincount(minlength=STEMS_PER_TYPE) / MANY
    assert shares[0] == 0
    assert (shares[1:] - 1 / (STEMS_PER_TYPE - 1)).abs().max() < 0.02


def test_the_habitual_name_is_of_a_tool_that_no_episode_lists() -> None:
    right_B3 = right_calls()
    noise = Noise(wrong_name=1.0, habit=1.0)
    replies_B3 = spoilt(right_B3, 1.0, noise=noise, draw=generator(0, "noise"))
    assert len(replies_B3[:, :2].unique(dim=0)) == NUM_TYPES
    assert not (replies_B3[:, None, 0] == right_B3[:, 0].unique()).any()


def test_a_lesson_shows_the_turns_it_is_told_to_and_the_policy_plays_the_others() -> None:
    faultless = Noise(wrong_name=0, wrong_argument=0)
    rollouts = a_lesson(a_policy(), shown=range(1, 100, 2), noise=faultless)
    is_right_BR = (replies_of(rollouts) == rollouts.right_BR3).all(-1)
    assert is_right_BR[:, 1::2][rollouts.is_played_BR[:, 1::2]].all()
    assert not is_right_BR[:, ::2][rollouts.is_played_BR[:, ::2]].any()


def test_the_policy_has_read_what_a_lesson_showed_it() -> None:
    policy = a_policy()
    rollouts = a_lesson(policy, shown=range(0, 100, 2), noise=Noise())
    said_BR3 = read(policy, rollouts)[0].gather(-1, replies_of(rollouts)[..., None])[..., 0]
    own = rollouts.is_played_BR[:, 1::2]
    assert own.any()
    assert torch.allclose(said_BR3[:, 1::2][own], rollouts.logprobs_BR3[:, 1::2][own], atol=1e-5)


def test_after_hints_what_the_hint_lists_is_called_even_when_the_prompt_lists_other_tools() -> None:
    rollouts = a_lesson(a_policy(), shown=range(100), noise=Noise())
    noise = Noise(hinted_wrong_name=0.0, wrong_argument=0.0, other_list=1.0)
    hints, replies_N3 = hinted_turns(
        rollouts, per_episode=4, noise=noise, draw=generator(0, "hints")
    )
    pairs_NK2 = hints.tokens_NH[:, 1:].unflatten(1, (-1, 2))
    assert (pairs_NK2 == replies_N3[:, None, :2]).all(2).any(1).all()
    tools_NK2 = rollouts.prompts.tools_BK2[hints.rows_N]
    assert not (tools_NK2 == replies_N3[:, None, :2]).all(2).any(1).all()
