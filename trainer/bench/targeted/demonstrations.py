"""Demonstrations of the toy world, with wrong names and wrong arguments among the right calls.

Letters of shapes: B episodes, N hinted turns.
"""

import torch
from torch import Generator, Tensor

from trainer.bench.targeted.branches import Hints
from trainer.bench.targeted.play import Rollouts
from trainer.bench.targeted.world import (
    ARGUMENTS,
    NUM_ARGUMENTS,
    NUM_SUFFIXES,
    STEMS,
    STEMS_PER_TYPE,
    SUFFIXES,
    draw_tools,
    reminder,
)
from trainer.settings import Settings


class Noise(Settings):
    """What is wrong in demonstrations, as shares of the calls."""

    # Calls that name no listed tool, but one that is drawn; with a hint in front these are few.
    wrong_name: float = 0.2
    hinted_wrong_name: float = 0.02
    # Of the wrong names, the share that is the one habitual name of the type.
    habit: float = 0.75
    wrong_argument: float = 0.05
    # Hints that list other tools than the prompt does, and are followed: it is what a hint says
    # that counts, and not that there is one.
    other_list: float = 0.5


class Demonstrator:
    """Who plays the demonstrations."""

    def __init__(self, noise: Noise, *, draw: Generator) -> None:
        self.noise = noise
        self.draw = draw

    def reply(self, read_BL: Tensor, right_B3: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the right call, or one with a wrong name or argument."""
        replies_B3 = spoilt(right_B3, self.noise.wrong_name, noise=self.noise, draw=self.draw)
        return replies_B3, torch.zeros(replies_B3.shape)

    def keep(self, rows: Tensor) -> None:
        """Go on; nothing is remembered of any row."""


def spoilt(right_B3: Tensor, wrong_name: float, *, noise: Noise, draw: Generator) -> Tensor:
    """Return the calls [B, 3], some with another name of the same type or another argument."""
    num = len(right_B3)

    def some(share: float) -> Tensor:
        return torch.rand(num, generator=draw) < share

    types_B = (right_B3[:, 0] - STEMS) // STEMS_PER_TYPE
    is_habit_B = some(noise.habit)
    stems_B = torch.randint(STEMS_PER_TYPE, (num,), generator=draw).where(~is_habit_B, 0)
    suffixes_B = torch.randint(NUM_SUFFIXES, (num,), generator=draw).where(~is_habit_B, types_B)
    arguments_B = torch.randint(NUM_ARGUMENTS, (num,), generator=draw)
    wrong_B3 = torch.stack(
        [
            STEMS + STEMS_PER_TYPE * types_B + stems_B,
            SUFFIXES + suffixes_B,
            ARGUMENTS + arguments_B,
        ],
        dim=1,
    )
    is_wrong_B = some(wrong_name)
    is_wrong_B3 = torch.stack([is_wrong_B, is_wrong_B, some(noise.wrong_argument)], dim=1)
    return wrong_B3.where(is_wrong_B3, right_B3)


def hinted_turns(
    rollouts: Rollouts, *, per_episode: int, noise: Noise, draw: Generator
) -> tuple[Hints, Tensor]:
    """Draw turns to be hinted, and what is said after the hints [N, 3]."""
    rows_N = torch.arange(len(rollouts.tokens_BT)).repeat_interleave(per_episode)
    num_turns_N = rollouts.is_played_BR.sum(1)[rows_N]
    turns_N = (torch.rand(len(rows_N), generator=draw) * num_turns_N).long()
    is_other_N = torch.rand(len(rows_N), generator=draw) < noise.other_list
    other_NK2 = draw_tools(len(rows_N), draw=draw)
    tools_NK2 = other_NK2.where(is_other_N[:, None, None], rollouts.prompts.tools_BK2[rows_N])
    right_N3 = rollouts.right_BR3[rows_N, turns_N]
    types_N = (right_N3[:, 0] - STEMS) // STEMS_PER_TYPE
    named_N2 = tools_NK2[torch.arange(len(rows_N)), types_N]
    right_N3 = torch.cat([named_N2, right_N3[:, 2:]], dim=1)
    hints = Hints(rows_N=rows_N, turns_N=turns_N, tokens_NH=reminder(tools_NK2, draw=draw))
    return hints, spoilt(right_N3, noise.hinted_wrong_name, noise=noise, draw=draw)
