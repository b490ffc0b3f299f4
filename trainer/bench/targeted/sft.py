"""Make the policy that all arms start from: it has bad habits, which hints cure."""

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from pipeline.task.claims import NotMeasuredError
from trainer.bench.targeted.branches import read, read_hinted, replies_of
from trainer.bench.targeted.demonstrations import Lesson, Noise, hinted_turns
from trainer.bench.targeted.gap import Play, measure
from trainer.bench.targeted.play import play
from trainer.bench.targeted.policy import Policy, PolicyConfig
from trainer.bench.targeted.worker import Tell
from trainer.bench.targeted.world import draw_prompts
from trainer.seeds import generator
from trainer.settings import Settings


class SftConfig(Settings):
    """How the policy is made; both parts end by what is measured, and not after so many steps."""

    policy: PolicyConfig = PolicyConfig()
    # Clean demonstrations come first, until the policy errs less than this: it has begun to copy
    # what is listed.
    clean_error: float = 0.2
    noise: Noise = Noise()
    # Ranges of the error as it plays, and of that after a hint. They must hold at so many checks
    # in a row: a gap that is on its way from one error to another is no property of the policy.
    least_error: float = 0.35
    most_error: float = 0.5
    most_hinted_error: float = 0.1
    checks_in_range: int = 3
    # Most steps of either part.
    max_steps: int = 300
    check_every: int = 20
    # Episodes that a check plays.
    num_checked: int = 128
    turns_per_goal: float = 2.5
    num_episodes: int = 24
    hints_per_episode: int = 6
    # Of the replies after hints, beside 1 for those without.
    hint_weight: float = 3.0
    lr: float = 4e-3
    # So low that what was learnt from the clean ones stays; it falls to 0 in a line.
    noisy_lr: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.98)
    seed: int = 0


class NoGapError(NotMeasuredError):
    """The policy came out without the gap that the experiment needs."""


def make(config: SftConfig, *, tell: Tell) -> tuple[Policy, Play]:
    """Train a policy from scratch on demonstrations; return it with how it plays.

    Raises:
        NoGapError: it does not learn to copy, or the errors do not stay in their ranges.
    """
    torch.manual_seed(config.seed)
    policy = Policy(config.policy)
    _teach_to_copy(policy, config, tell=tell)
    return policy, _teach_habits(policy, config, tell=tell)


def _teach_to_copy(policy: Policy, config: SftConfig, *, tell: Tell) -> None:
    optimizer = Adam(policy.parameters(), lr=config.lr, betas=config.betas)
    clean = Noise(wrong_name=0, hinted_wrong_name=0)
    for step in range(config.max_steps):
        _learn(policy, optimizer, config=config, noise=clean, period=1, step=step)
        if not _is_due(step, config):
            continue
        played = check(policy, config)
        tell(f"{step + 1} clean steps: {_errors(played)}")
        if played.error < config.clean_error:
            return
    raise NoGapError(
        f"after {config.max_steps} clean steps: {_errors(check(policy, config))}, "
        f"expected an error below {config.clean_error:g}"
    )


def _teach_habits(policy: Policy, config: SftConfig, *, tell: Tell) -> Play:
    """Go on with noise until the gap stands; return how the policy then plays."""
    optimizer = Adam(policy.parameters(), lr=config.noisy_lr, betas=config.betas)
    num_in_range = 0
    for step in range(config.max_steps):
        for group in optimizer.param_groups:
            group["lr"] = config.noisy_lr * (1 - step / config.max_steps)
        _learn(policy, optimizer, config=config, noise=config.noise, period=2, step=step)
        if not _is_due(step, config):
            continue
        played = check(policy, config)
        tell(f"{step + 1} steps of noise: {_errors(played)}")
        num_in_range = num_in_range + 1 if _has_gap(played, config) else 0
        if num_in_range == config.checks_in_range:
            return played
    raise NoGapError(
        f"after {config.max_steps} steps of noise: {_errors(check(policy, config))}, expected "
        f"{config.least_error:g} to {config.most_error:g}, {config.most_hinted_error:g} at most "
        f"after a hint, {config.checks_in_range} times in a row"
    )


def _errors(played: Play) -> str:
    return f"error {played.error:.2f}, {played.hinted_error:.2f} after a hint"


def check(policy: Policy, config: SftConfig) -> Play:
    """Measure how a policy plays, and what hints would do."""
    return measure(
        policy,
        teacher=policy,
        num_episodes=config.num_checked,
        turns_per_goal=config.turns_per_goal,
        seed=config.seed,
    )


def _is_due(step: int, config: SftConfig) -> bool:
    return (step + 1) % config.check_every == 0


def _has_gap(played: Play, config: SftConfig) -> bool:
    is_in_range = config.least_error <= played.error <= config.most_error
    return is_in_range and played.hinted_error < config.most_hinted_error


def _learn(
    policy: Policy, optimizer: Optimizer, *, config: SftConfig, noise: Noise, period: int, step: int
) -> None:
    loss = _loss(policy, config=config, noise=noise, period=period, step=step)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()


def _loss(policy: Policy, *, config: SftConfig, noise: Noise, period: int, step: int) -> Tensor:
    """Return the cross-entropy of demonstrated replies, without hints plus after hints.

    One turn in a period is demonstrated, the policy plays the others.
    """
    draw = generator(config.seed, "demonstrations", str(noise), step)
    prompts = draw_prompts(config.num_episodes, turns_per_goal=config.turns_per_goal, draw=draw)
    shown = range(step % period, int(prompts.num_turns_B.max()), period)
    rollouts = play(Lesson(policy, prompts, noise=noise, shown=shown, draw=draw), prompts)
    said_BR3V, trunk = read(policy, rollouts)
    logprobs_BR3 = said_BR3V.gather(-1, replies_of(rollouts)[..., None])[..., 0]
    hints, replies_N3 = hinted_turns(
        rollouts, per_episode=config.hints_per_episode, noise=noise, draw=draw
    )
    hinted_N3V = read_hinted(policy, trunk, hints, replies_N3)
    hinted_N3 = hinted_N3V.gather(-1, replies_N3[..., None])[..., 0]
    is_shown_BR = rollouts.is_played_BR[:, shown.start :: shown.step]
    plain = logprobs_BR3[:, shown.start :: shown.step][is_shown_BR].mean()
    return -plain - config.hint_weight * hinted_N3.mean()
