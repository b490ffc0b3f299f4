"""Measure how often a policy names a tool that is not there: as it plays, and after a hint.

Letters of shapes: B episodes, R turns, K types, N hinted turns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.bench.targeted.branches import Hints, read, read_hinted
from trainer.bench.targeted.play import Rollouts, Sampler, play
from trainer.bench.targeted.policy import Policy
from trainer.bench.targeted.world import draw_prompts, reminder
from trainer.seeds import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """How a policy did in fresh episodes; shares are from 0 to 1."""

    # Calls that were answered by an error.
    error: float
    # Error of an exact kind: probability that is not on the listed tool of the goal's type, after
    # a reminder of the tools, over all turns.
    hinted_error: float
    # Mean of the rewards.
    reward: float
    # Episodes with at least one error.
    any_error: float
    # Mean calls of an episode.
    calls: float


@torch.no_grad()
def measure(
    policy: Policy, *, num_episodes: int, turns_per_goal: float, seed: int, teacher: Policy
) -> Play:
    """Play fresh episodes with the policy, and let the teacher read their turns after hints."""
    draw = generator(seed, "fresh episodes")
    prompts = draw_prompts(num_episodes, turns_per_goal=turns_per_goal, draw=draw)
    rollouts = play(Sampler(policy, prompts, draw=generator(seed, "fresh replies")), prompts)
    num_calls = int(rollouts.is_played_BR.sum())
    return Play(
        error=int(rollouts.is_error_BR.sum()) / num_calls,
        hinted_error=1 - float(listed_mass(teacher, rollouts, seed=seed)),
        reward=float(rollouts.rewards_B.mean()),
        any_error=float(rollouts.is_error_BR.any(1).float().mean()),
        calls=num_calls / num_episodes,
    )


def listed_mass(teacher: Policy, rollouts: Rollouts, *, seed: int, num_rows: int = 64) -> Tensor:
    """Return the mean probability of the right name after a hint, over turns of some rows."""
    rows_N, turns_N = rollouts.is_played_BR[:num_rows].nonzero().unbind(1)
    tools_NK2 = rollouts.prompts.tools_BK2[rows_N]
    hints = Hints(
        rows_N=rows_N,
        turns_N=turns_N,
        tokens_NH=reminder(tools_NK2, draw=generator(seed, "canary")),
    )
    right_N3 = rollouts.right_BR3[rows_N, turns_N]
    logprobs_N3V = read_hinted(teacher, read(teacher, rollouts)[1], hints, right_N3)
    named_N2 = logprobs_N3V.gather(-1, right_N3[..., None])[:, :2, 0]
    return named_N2.sum(1).exp().mean()
