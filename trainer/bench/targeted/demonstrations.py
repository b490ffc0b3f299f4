"""Demonstrations of the toy world, with wrong names and wrong arguments among the right calls.

Letters of shapes: B episodes, N hinted turns.
"""

import torch
from torch import Generator, Tensor

from trainer.bench.targeted.branches import Hints
from trainer.bench.targeted.play import Rollouts, Sampler
from trainer.bench.targeted.policy import Policy
from trainer.bench.targeted.world import (
    ARGUMENTS,
    NUM_ARGUMENTS,
    NUM_SUFFIXES,
    STEMS,
    STEMS_PER_TYPE,
    SUFFIXES,
    Prompts,
    draw_tools,
    reminder,
)
from trainer.settings import Settings


class Noise(Settings):
    """What is wrong in demonstrations, as shares of the calls."""

    # Calls that name no listed tool; with a hint in front these are few. The policy itself comes
    # to more of them than it is shown, because it copies some of its own.
    wrong_name: float = 0.25
    hinted_wrong_name: float = 0.02
    # Of the wrong names, the share that is the one habitual name of the type, of a tool that is
    # gone; the others are any names of the type with another stem than the right one.
    habit: float = 0.5
    wrong_argument: float = 0.05
    # Hints that list other tools than the prompt does, and are followed: it is what a hint says
    # that counts, and not that there is one.
    other_list: float = 0.5


class Lesson:
    """A policy that plays, some of whose turns are a demonstrator's.

    What is demonstrated answers what the policy has done so far. After demonstrations alone its own
    mistakes are nothing it has ever seen, and make more of them than it was shown.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: Prompts,
        *,
        noise: Noise,
        shown: range,
        draw: Generator,
    ) -> None:
        self.sampler = Sampler(policy, prompts, draw=draw)
        self.noise = noise
        self.draw = draw
        # Turns that are demonstrated, and the next turn.
        self.shown = shown
        self.turn = 0

    def reply(self, read_BL: Tensor, right_B3: Tensor) -> tuple[Tensor, Tensor]:
        """Let the policy reply; or return the right call, or one with a wrong name or argument."""
        self.turn += 1
        if self.turn - 1 not in self.shown:
            return self.sampler.reply(read_BL, right_B3)
        replies_B3 = spoilt(right_B3, self.noise.wrong_name, noise=self.noise, draw=self.draw)
        self.sampler.read(torch.cat([read_BL, replies_B3[:, :-1]], dim=1))
        return replies_B3, torch.zeros(replies_B3.shape)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows."""
        self.sampler.keep(rows)


def spoilt(right_B3: Tensor, wrong_name: float, *, noise: Noise, draw: Generator) -> Tensor:
    """Return the calls [B, 3], some with another name of the type or with any argument."""
    num = len(right_B3)

    def some(share: float) -> Tensor:
        return torch.rand(num, generator=draw) < share

    types_B = (right_B3[:, 0] - STEMS) // STEMS_PER_TYPE
    # Any stem but the right one, behind which there is one suffix: a wrong one there would be
    # copied, by what completes a name as it did before, and make more mistakes than were shown.
    others_B = right_B3[:, 0] - STEMS + torch.randint(1, STEMS_PER_TYPE, (num,), generator=draw)
    is_habit_B = some(noise.habit)
    stems_B = (others_B % STEMS_PER_TYPE).where(~is_habit_B, 0)
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
