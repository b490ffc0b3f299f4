"""Play episodes of the toy world in lock-step.

Letters of shapes: B episodes, R turns, L tokens that are read, T tokens of an episode.
"""

from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Generator, Tensor

from trainer.bench.targeted.policy import Growing, Policy
from trainer.bench.targeted.world import (
    DONE,
    GOAL_LENGTH,
    HEADER,
    PAD,
    PROMPT_LENGTH,
    REPLY_LENGTH,
    TURN_LENGTH,
    Prompts,
    goal_of,
    result_of,
    right_call,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rollouts:
    """Finished episodes, one a row."""

    prompts: Prompts
    # [B, T], padded behind the last turn of an episode.
    tokens_BT: Tensor
    # [B, R, 3], of the replies when they were sampled.
    logprobs_BR3: Tensor
    # [B, R, 3], the replies that would have met the goals.
    right_BR3: Tensor
    # [B, R], turns that the episode had.
    is_played_BR: Tensor
    # [B, R], calls that were answered by an error: of a tool that is not there, or malformed.
    is_error_BR: Tensor
    # [B], 1 when all goals were met with the right values, else 0.
    rewards_B: Tensor

    def take(self, rows: Tensor) -> "Rollouts":
        """Return some rows of it."""
        tensors = {
            name.name: getattr(self, name.name)[rows]
            for name in fields(self)
            if name.name != "prompts"
        }
        return Rollouts(prompts=self.prompts.take(rows), **tensors)


class Player(Protocol):
    """What replies in all episodes at once."""

    def reply(self, read_BL: Tensor, right_B3: Tensor) -> tuple[Tensor, Tensor]:
        """Return replies [B, 3] with their log-probabilities.

        `read` is what came after the second token of the last reply; `right` is the reply that
        meets the goal, at which a policy does not look.
        """

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows; the other episodes have ended."""


@torch.no_grad()
def play(player: Player, prompts: Prompts) -> Rollouts:
    """Play an episode for each prompt, until its goals are met or its turns are over."""
    table = _Table(prompts)
    turn = 0
    while len(table.rows):
        read_BL, right_B3 = table.ask(turn)
        replies_B3, logprobs_B3 = player.reply(read_BL, right_B3)
        table.answer(turn, replies_B3, logprobs_B3, right_B3)
        if len(goes_on := table.goes_on(turn)) < len(table.rows):
            table.keep(goes_on)
            player.keep(goes_on)
        turn += 1
    return table.rollouts(turn)


class _Table:
    """The episodes that are being played."""

    def __init__(self, prompts: Prompts) -> None:
        num, num_turns = len(prompts.tokens_BP), int(prompts.num_turns_B.max())
        self.prompts = prompts
        self.tokens_BT = torch.full((num, PROMPT_LENGTH + TURN_LENGTH * num_turns), PAD)
        self.tokens_BT[:, :PROMPT_LENGTH] = prompts.tokens_BP
        self.logprobs_BR3 = torch.zeros(num, num_turns, REPLY_LENGTH)
        self.right_BR3 = torch.full((num, num_turns, REPLY_LENGTH), PAD)
        self.is_played_BR = torch.zeros(num, num_turns, dtype=torch.bool)
        self.is_error_BR = torch.zeros(num, num_turns, dtype=torch.bool)
        self.rewards_B = torch.zeros(num)
        # Of those that go on: their rows, what they are about, the next goal, all right so far.
        self.rows = torch.arange(num)
        self.live = prompts
        self.goals_B = torch.zeros(num, dtype=torch.long)
        self.is_right_B = torch.ones(num, dtype=torch.bool)

    def ask(self, turn: int) -> tuple[Tensor, Tensor]:
        """Set the goals of a turn; return what is to be read, and the right replies."""
        start = PROMPT_LENGTH + TURN_LENGTH * turn
        end = start + GOAL_LENGTH
        self.tokens_BT[self.rows, start : end - 1] = goal_of(self.live, self.goals_B)
        self.tokens_BT[self.rows, end - 1] = HEADER
        # The last token of the reply before and its result have not been read.
        first = start - 2 if turn else 0
        return self.tokens_BT[self.rows, first:end], right_call(self.live, self.goals_B)

    def answer(self, turn: int, replies_B3: Tensor, logprobs_B3: Tensor, right_B3: Tensor) -> None:
        """Answer the replies of a turn, and write all down."""
        start = PROMPT_LENGTH + TURN_LENGTH * turn + GOAL_LENGTH
        results_B = result_of(replies_B3, self.live)
        self.tokens_BT[self.rows, start : start + REPLY_LENGTH] = replies_B3
        self.tokens_BT[self.rows, start + REPLY_LENGTH] = results_B
        self.logprobs_BR3[self.rows, turn] = logprobs_B3
        self.right_BR3[self.rows, turn] = right_B3
        self.is_played_BR[self.rows, turn] = True
        self.is_error_BR[self.rows, turn] = results_B != DONE
        self.is_right_B &= (results_B != DONE) | (replies_B3 == right_B3).all(1)
        self.goals_B += results_B == DONE

    def goes_on(self, turn: int) -> Tensor:
        """Return which of the rows that were live go on; reward those that met their goals."""
        is_met_B = self.goals_B == self.live.num_goals_B
        self.rewards_B[self.rows] = (is_met_B & self.is_right_B).float()
        return (~is_met_B & (self.live.num_turns_B > turn + 1)).nonzero()[:, 0]

    def keep(self, goes_on: Tensor) -> None:
        """Go on with some of the rows that were live."""
        self.rows = self.rows[goes_on]
        self.live = self.live.take(goes_on)
        self.goals_B = self.goals_B[goes_on]
        self.is_right_B = self.is_right_B[goes_on]

    def rollouts(self, num_turns: int) -> Rollouts:
        """Return what was played, cut behind the longest episode."""
        return Rollouts(
            prompts=self.prompts,
            tokens_BT=self.tokens_BT[:, : PROMPT_LENGTH + TURN_LENGTH * num_turns],
            logprobs_BR3=self.logprobs_BR3[:, :num_turns],
            right_BR3=self.right_BR3[:, :num_turns],
            is_played_BR=self.is_played_BR[:, :num_turns],
            is_error_BR=self.is_error_BR[:, :num_turns],
            rewards_B=self.rewards_B,
        )


class Sampler:
    """A policy that plays, sampling at temperature 1."""

    def __init__(self, policy: Policy, prompts: Prompts, *, draw: Generator) -> None:
        self.policy = policy
        self.draw = draw
        room = PROMPT_LENGTH + TURN_LENGTH * int(prompts.num_turns_B.max())
        self.memory = Growing(policy.config, num_rows=len(prompts.tokens_BP), room=room)

    def reply(self, read_BL: Tensor, right_B3: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Sample three tokens."""
        replies, logprobs = [], []
        for _ in range(REPLY_LENGTH):
            hidden_BLD = self.policy(read_BL, memory=self.memory)
            logprobs_BV = self.policy.logprobs(hidden_BLD[:, -1])
            read_BL = torch.multinomial(logprobs_BV.exp(), 1, generator=self.draw)
            replies.append(read_BL)
            logprobs.append(logprobs_BV.gather(1, read_BL))
        return torch.cat(replies, dim=1), torch.cat(logprobs, dim=1)

    @torch.no_grad()
    def read(self, read_BL: Tensor) -> None:
        """Take in what was said in its place."""
        self.policy(read_BL, memory=self.memory)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows."""
        self.memory.keep(rows)
