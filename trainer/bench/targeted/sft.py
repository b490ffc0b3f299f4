"""Make the policy that all arms start from: it has bad habits, which hints cure."""

import torch
from torch import Tensor

from trainer.bench.targeted.branches import read, read_hinted, replies_of
from trainer.bench.targeted.demonstrations import Demonstrator, Noise, hinted_turns
from trainer.bench.targeted.gap import Play, measure
from trainer.bench.targeted.play import play
from trainer.bench.targeted.policy import Policy, PolicyConfig
from trainer.bench.targeted.world import draw_prompts
from trainer.seeds import generator
from trainer.settings import Settings


class SftConfig(Settings):
    """How the policy is made; it is done when errors are in range, not after so many steps."""

    policy: PolicyConfig = PolicyConfig()
    # First clean demonstrations, until it copies well; then those with noise.
    noise: Noise = Noise()
    clean_error: float = 0.08
    max_clean_steps: int = 300
    # Range of the error as it plays, and most after a hint.
    least_error: float = 0.35
    most_error: float = 0.5
    most_hinted_error: float = 0.1
    min_noisy_steps: int = 60
    max_noisy_steps: int = 400
    check_every: int = 20
    turns_per_goal: float = 1.75
    num_episodes: int = 32
    hints_per_episode: int = 3
    lr: float = 4e-3
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
    optimizer = torch.optim.Adam(policy.parameters(), lr=config.lr, betas=(0.9, 0.98))
    clean = Noise(wrong_name=0, hinted_wrong_name=0)
    for step in range(config.max_clean_steps):
        _learn(policy, optimizer, config=config, noise=clean, parts=("clean", step))
        if (step + 1) % config.check_every == 0 and _played(policy, config).error < config.clean_error:
            break
    for step in range(config.max_noisy_steps):
        _slow_down(optimizer, config, step)
        _learn(policy, optimizer, config=config, noise=config.noise, parts=("noisy", step))
        if (step + 1) % config.check_every or step < config.min_noisy_steps:
            continue
        played = _played(policy, config)
        if config.least_error <= played.error <= config.most_error and played.hinted_error < config.most_hinted_error:
            return policy, played
    raise NoGapError("no gap")
def _played(policy, config):
    r = measure(policy, num_episodes=128, turns_per_goal=config.turns_per_goal, seed=config.seed, teacher=policy)
    import time
    print('%.0f'%time.process_time(), r, flush=True)
    return r
def _slow_down(optimizer, config, step):
    for g in optimizer.param_groups: g["lr"] = config.lr * max(0.1, 1 - step / 200)
def _learn(policy, optimizer, *, config, noise, parts):
    draw = generator(config.seed, *parts)
    prompts = draw_prompts(config.num_episodes, turns_per_goal=config.turns_per_goal, draw=draw)
    rollouts = play(Demonstrator(noise, draw=draw), prompts)
    said, trunk = read(policy, rollouts)
    loss = -said.gather(-1, replies_of(rollouts)[..., None])[..., 0][rollouts.is_played_BR].mean()
    hints, replies = hinted_turns(rollouts, per_episode=config.hints_per_episode, noise=noise, draw=draw)
    hinted = read_hinted(policy, trunk, hints, replies)
    loss = loss - hinted.gather(-1, replies[..., None]).mean()
    optimizer.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0); optimizer.step()
