import pytest
import torch

from trainer.bench.targeted.arm_run import ArmResult, train
from trainer.bench.targeted.arms import ARMS, RunConfig
from trainer.bench.targeted.policy import Policy, PolicyConfig

CONFIG = RunConfig(steps=3, prompts=2, group=3, turns_per_goal=1.0, final_episodes=4)


def a_run(arm: str, *, seed: int = 0) -> ArmResult:
    torch.manual_seed(0)
    start = Policy(PolicyConfig(num_layers=1, num_heads=2, width=16, hidden=16))
    return train(start, ARMS[arm], config=CONFIG, seed=seed)


def test_arms_of_one_seed_play_the_same_first_episodes_and_part_ways_after_a_step() -> None:
    plain, hinted = a_run("rl"), a_run("kl")
    assert plain.errors[0] == hinted.errors[0]
    assert plain.final != hinted.final


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    once, again, other = a_run("kl"), a_run("kl"), a_run("kl", seed=1)
    assert (once.final, once.errors, once.rewards) == (again.final, again.errors, again.rewards)
    assert once.final != other.final


def test_only_an_arm_with_hints_spends_time_on_a_teacher() -> None:
    assert a_run("rl").teacher_s == 0
    assert a_run("negative").teacher_s == 0
    assert a_run("kl").teacher_s > 0


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_every_arm_leaves_figures_that_are_shares(arm: str) -> None:
    result = a_run(arm)
    assert len(result.errors) == len(result.rewards) == CONFIG.steps
    shares = result.final.error, result.final.hinted_error, result.final.any_error
    assert all(0 <= share <= 1 for share in shares)
