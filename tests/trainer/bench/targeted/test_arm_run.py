import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from tests.trainer.bench.targeted.careless import Careless
from trainer.bench.targeted.arm_run import ArmResult, ArmRun, train
from trainer.bench.targeted.arms import ARMS, RunConfig
from trainer.bench.targeted.branches import read, replies_of
from trainer.bench.targeted.demonstrations import Noise
from trainer.bench.targeted.play import play
from trainer.bench.targeted.policy import Policy, PolicyConfig
from trainer.bench.targeted.world import draw_prompts
from trainer.seeds import generator

CONFIG = RunConfig(steps=3, prompts=2, group=3, turns_per_goal=1.0, final_episodes=4)


def a_run(arm: str, *, seed: int = 0) -> ArmResult:
    return train(a_start(), ARMS[arm], config=CONFIG, seed=seed)


def a_start() -> Policy:
    torch.manual_seed(0)
    return Policy(PolicyConfig(num_layers=1, num_heads=2, width=16, hidden=16))


def learnt(arm: str, *, seed: int = 0) -> tuple[Tensor, dict[str, float]]:
    """Return what an arm makes of a policy in two steps of careless episodes, and its time."""
    run = ArmRun(a_start(), ARMS[arm], config=CONFIG, seed=seed)
    for step in range(2):
        prompts = draw_prompts(6, turns_per_goal=2.5, draw=generator(1, "prompts", step))
        noise = Noise(wrong_argument=0.02)
        careless = Careless(noise, draw=generator(1, "replies", step))
        rollouts = play(careless, prompts)
        assert 0 < float(rollouts.rewards_B.mean()) < 1
        run.learn(rollouts, step)
    return parameters_to_vector(run.policy.parameters()).detach(), run.spent


def test_every_arm_makes_something_else_of_the_same_episodes() -> None:
    names = sorted(ARMS)
    weights = {name: learnt(name)[0] for name in names}
    for one, other in itertools.combinations(names, 2):
        assert not torch.equal(weights[one], weights[other]), f"{one} learns what {other} does"


def test_what_an_arm_learns_depends_on_nothing_but_its_episodes_and_its_seed() -> None:
    assert torch.equal(learnt("kl_other")[0], learnt("kl_other")[0])
    assert not torch.equal(learnt("kl_other")[0], learnt("kl_other", seed=1)[0])


def test_only_an_arm_with_hints_spends_time_on_them() -> None:
    assert learnt("rl")[1]["teacher"] == learnt("negative")[1]["teacher"] == 0
    assert learnt("kl")[1]["teacher"] > 0


def test_a_fixed_negative_makes_the_flagged_names_less_likely() -> None:
    run = ArmRun(a_start(), ARMS["negative"], config=CONFIG, seed=0)
    prompts = draw_prompts(6, turns_per_goal=2.5, draw=generator(1, "prompts"))
    rollouts = play(Careless(Noise(), draw=generator(1, "replies")), prompts)

    @torch.no_grad()
    def names() -> float:
        said_BR3V = read(run.policy, rollouts)[0]
        said_BR3 = said_BR3V.gather(-1, replies_of(rollouts)[..., None])[..., 0]
        return float(said_BR3[rollouts.is_error_BR][:, :2].mean())

    before = names()
    no_rewards = torch.zeros_like(rollouts.rewards_B)
    run.learn(replace(rollouts, rewards_B=no_rewards), 0)
    assert names() < before


def test_arms_of_one_seed_play_the_same_first_episodes() -> None:
    assert a_run("rl").errors[0] == a_run("kl").errors[0]
    assert a_run("rl").rewards[0] == a_run("kl").rewards[0]


def test_the_same_seed_gives_the_same_run() -> None:
    once, again = a_run("kl"), a_run("kl")
    assert (once.final, once.errors, once.rewards) == (again.final, again.errors, again.rewards)


@pytest.mark.parametrize("arm", sorted(ARMS))
def test_every_arm_leaves_figures_that_are_shares(arm: str) -> None:
    result = a_run(arm)
    assert len(result.errors) == len(result.rewards) == CONFIG.steps
    shares = result.final.error, result.final.hinted_error, result.final.any_error
    assert all(0 <= share <= 1 for share in shares)
