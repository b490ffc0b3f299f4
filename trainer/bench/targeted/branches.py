"""Read the turns of rollouts, as they were played or with a hint in front.

Letters of shapes: B episodes, R turns, N hinted turns, V vocabulary, D width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.bench.targeted.play import Rollouts
from trainer.bench.targeted.policy import Branch, Policy, Trunk
from trainer.bench.targeted.world import (
    GOAL_LENGTH,
    HEADER,
    PROMPT_LENGTH,
    REPLY_LENGTH,
    TURN_LENGTH,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hints:
    """Hints in front of the headers of some turns."""

    # [N], episode and turn of each.
    rows_N: Tensor
    turns_N: Tensor
    # [N, H], whole messages.
    tokens_NH: Tensor


def header_of(turn: Tensor) -> Tensor:
    """Return the token at which the header of a turn stands."""
    return PROMPT_LENGTH + TURN_LENGTH * turn + GOAL_LENGTH - 1


def read(policy: Policy, rollouts: Rollouts) -> tuple[Tensor, Trunk]:
    """Return the log-probabilities [B, R, 3, V] of what is said in each turn, and the memory."""
    trunk = Trunk()
    hidden_BTD = policy(rollouts.tokens_BT, memory=trunk)
    headers_R = header_of(torch.arange(rollouts.is_played_BR.shape[1]))
    predicts_R3 = headers_R[:, None] + torch.arange(REPLY_LENGTH)
    return policy.logprobs(hidden_BTD[:, predicts_R3]), trunk


def read_hinted(policy: Policy, trunk: Trunk, hints: Hints, replies_N3: Tensor) -> Tensor:
    """Return the log-probabilities [N, 3, V] of what is said after each hint.

    Each branch is the history as it was played, the hint, the header and the reply.
    """
    headers_N1 = torch.full((len(replies_N3), 1), HEADER)
    tokens_NL = torch.cat([hints.tokens_NH, headers_N1, replies_N3[:, :-1]], dim=1)
    branch = Branch(trunk, rows_B=hints.rows_N, starts_B=header_of(hints.turns_N))
    hidden_NLD = policy(tokens_NL, memory=branch)
    return policy.logprobs(hidden_NLD[:, -REPLY_LENGTH:])


def replies_of(rollouts: Rollouts) -> Tensor:
    """Return the replies [B, R, 3] of all turns."""
    headers_R = header_of(torch.arange(rollouts.is_played_BR.shape[1]))
    return rollouts.tokens_BT[:, headers_R[:, None] + 1 + torch.arange(REPLY_LENGTH)]
