"""Make the policy that all arms start from: it has bad habits, which hints cure."""

import copy

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from trainer.bench.targeted.branches import read, read_hinted, replies_of
from trainer.bench.targeted.demonstrations import Demonstrator, Noise, hinted_turns
from trainer.bench.targeted.gap import Play, measure
from trainer.bench.targeted.play import play
from trainer.bench.targeted.policy import Policy, PolicyConfig
from trainer.bench.targeted.world import draw_prompts
from trainer.seeds import generator
from trainer.settings import Settings


class SftConfig(Settings):
    """How the policy is made; noise ends when a gap is measured, not after so many steps."""

    policy: PolicyConfig = PolicyConfig()
    # Clean demonstrations come first, until the policy copies what is listed.
    clean_error: float = 0.06
    noise: Noise = Noise()
    # Range of the error as it plays, and most of it after a hint, for the noise to end.
    least_error: float = 0.35
    most_error: float = 0.5
    most_hinted_error: float = 0.1
    # Most steps of either kind.
    max_steps: int = 400
    check_every: int = 20
    # Episodes that a check plays.
    num_checked: int = 128
    turns_per_goal: float = 2.5
    num_episodes: int = 32
    hints_per_episode: int = 6
    # Of the replies after hints, beside 1 for those without.
    hint_weight: float = 1.5
    lr: float = 4e-3
    # So low that what was learnt from the clean ones stays.
    noisy_lr: float = 2e-3
    # Noise makes weights wander: a moving average of them is what is measured and used.
    average_rate: float = 0.03
    seed: int = 0


class NoGapError(RuntimeError):
    """The policy came out without the gap that the experiment needs."""


def make(config: SftConfig) -> tuple[Policy, Play]:
    """Train a policy from scratch on demonstrations; return it with how it plays.

    Raises:
        NoGapError: the errors are not in their range when the steps are over.
    """
    torch.manual_seed(config.seed)
    policy = Policy(config.policy)
    optimizer = Adam(policy.parameters(), lr=config.lr, betas=(0.9, 0.98))
    clean = Noise(wrong_name=0, hinted_wrong_name=0)
    for step in range(config.max_steps):
        _learn(policy, optimizer, config=config, noise=clean, step=step)
        if _is_due(step, config) and check(policy, config).error < config.clean_error:
            break
    optimizer = Adam(policy.parameters(), lr=config.noisy_lr, betas=(0.9, 0.98))
    average = copy.deepcopy(policy)
    for step in range(config.max_steps):
        _learn(policy, optimizer, config=config, noise=config.noise, step=step)
        _follow(average, policy, rate=config.average_rate)
        if _is_due(step, config) and _has_gap(played := check(average, config), config):
            return average, played
    played = check(average, config)
    raise NoGapError(
        f"after {config.max_steps} steps of noise: error {played.error:.2f}, hinted "
        f"{played.hinted_error:.2f}, expected {config.least_error:g} to {config.most_error:g}, "
        f"hinted below {config.most_hinted_error:g}"
    )


def check(policy: Policy, config: SftConfig) -> Play:
    """Measure how a policy plays, and what hints would do."""
    return measure(
        policy,
        teacher=policy,
        num_episodes=config.num_checked,
        turns_per_goal=config.turns_per_goal,
        seed=config.seed,
    )


@torch.no_grad()
def _follow(average: Policy, policy: Policy, *, rate: float) -> None:
    for old, new in zip(average.parameters(), policy.parameters(), strict=True):
        old.lerp_(new, rate)


def _is_due(step: int, config: SftConfig) -> bool:
    return (step + 1) % config.check_every == 0


def _has_gap(played: Play, config: SftConfig) -> bool:
    is_in_range = config.least_error <= played.error <= config.most_error
    return is_in_range and played.hinted_error < config.most_hinted_error


def _learn(
    policy: Policy, optimizer: Optimizer, *, config: SftConfig, noise: Noise, step: int
) -> None:
    loss = _loss(policy, config=config, noise=noise, step=step)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()


def _loss(policy: Policy, *, config: SftConfig, noise: Noise, step: int) -> Tensor:
    """Return the cross-entropy of demonstrated replies, without hints plus after hints."""
    draw = generator(config.seed, "demonstrations", str(noise), step)
    prompts = draw_prompts(config.num_episodes, turns_per_goal=config.turns_per_goal, draw=draw)
    rollouts = play(Demonstrator(noise, draw=draw), prompts)
    said_BR3V, trunk = read(policy, rollouts)
    logprobs_BR3 = said_BR3V.gather(-1, replies_of(rollouts)[..., None])[..., 0]
    hints, replies_N3 = hinted_turns(
        rollouts, per_episode=config.hints_per_episode, noise=noise, draw=draw
    )
    hinted_N3V = read_hinted(policy, trunk, hints, replies_N3)
    hinted_N3 = hinted_N3V.gather(-1, replies_N3[..., None])[..., 0]
    plain = logprobs_BR3[rollouts.is_played_BR].mean()
    return -plain - config.hint_weight * hinted_N3.mean()
