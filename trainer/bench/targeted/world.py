"""A toy world of tool calls, for many episodes in lock-step.

An episode lists four tools, one of each type, each named by a stem and a suffix. It sets one goal
after another, a type and an argument: call the listed tool of this type with this argument. What is
not listed is not found, which the policy is told and which costs a turn. A wrong argument goes
unnoticed until the end, when it spoils the reward.

Every message has a fixed length, so that token t is of the same kind in all episodes: the prompt,
then for each turn `type argument header | stem suffix argument | result`.

Letters of shapes: B episodes, G goals, K types, P tokens of the prompt.
"""

from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor

NUM_TYPES = 4
# The first of a type is of tools that are gone: no episode lists it.
STEMS_PER_TYPE = 5
NUM_SUFFIXES = 12
NUM_ARGUMENTS = 16
MIN_GOALS, MAX_GOALS = 8, 12

PAD, HEADER, REMINDER, TOOLS, DONE, NOT_FOUND, MALFORMED = range(7)
# The first token of each kind.
TYPES = MALFORMED + 1
STEMS = TYPES + NUM_TYPES
SUFFIXES = STEMS + NUM_TYPES * STEMS_PER_TYPE
ARGUMENTS = SUFFIXES + NUM_SUFFIXES
VOCABULARY = ARGUMENTS + NUM_ARGUMENTS

PROMPT_LENGTH = 1 + 2 * NUM_TYPES
GOAL_LENGTH = 3
REPLY_LENGTH = 3
TURN_LENGTH = GOAL_LENGTH + REPLY_LENGTH + 1
HINT_LENGTH = 1 + 2 * NUM_TYPES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompts:
    """What episodes are about, one a row."""

    # [B, K, 2], stem and suffix of the listed tool of each type.
    tools_BK2: Tensor
    # [B, P], as the policy reads it.
    tokens_BP: Tensor
    # [B, G], tokens; only the first `num_goals` of a row are set.
    types_BG: Tensor
    arguments_BG: Tensor
    # [B], how many there are.
    num_goals_B: Tensor
    # [B], calls that an episode may make.
    num_turns_B: Tensor

    def take(self, rows: Tensor) -> "Prompts":
        """Return some rows of it; a row may be taken several times."""
        return Prompts(**{name.name: getattr(self, name.name)[rows] for name in fields(self)})


def draw_prompts(num: int, *, turns_per_goal: float, draw: Generator) -> Prompts:
    """Draw prompts, each with its own tools and goals."""
    tools_BK2 = draw_tools(num, draw=draw)
    types_BG = torch.randint(NUM_TYPES, (num, MAX_GOALS), generator=draw)
    arguments_BG = torch.randint(NUM_ARGUMENTS, (num, MAX_GOALS), generator=draw)
    num_goals_B = torch.randint(MIN_GOALS, MAX_GOALS + 1, (num,), generator=draw)
    marks_B1 = torch.full((num, 1), TOOLS)
    return Prompts(
        tools_BK2=tools_BK2,
        tokens_BP=torch.cat([marks_B1, listing(tools_BK2, draw=draw)], dim=1),
        types_BG=TYPES + types_BG,
        arguments_BG=ARGUMENTS + arguments_BG,
        num_goals_B=num_goals_B,
        num_turns_B=(num_goals_B * turns_per_goal).ceil().long(),
    )


def draw_tools(num: int, *, draw: Generator) -> Tensor:
    """Draw a tool of each type [B, K, 2], by its stem and suffix."""
    stems_BK = torch.randint(1, STEMS_PER_TYPE, (num, NUM_TYPES), generator=draw)
    suffixes_BK = torch.randint(NUM_SUFFIXES, (num, NUM_TYPES), generator=draw)
    first_K = STEMS + STEMS_PER_TYPE * torch.arange(NUM_TYPES)
    return torch.stack([first_K + stems_BK, SUFFIXES + suffixes_BK], dim=-1)


def listing(tools_BK2: Tensor, *, draw: Generator) -> Tensor:
    """Return the tools as they are listed [B, 2 K], in any order."""
    order_BK = _shuffled(len(tools_BK2), NUM_TYPES, draw=draw)
    return tools_BK2.gather(1, order_BK[..., None].expand(-1, -1, 2)).flatten(1)


def reminder(tools_BK2: Tensor, *, draw: Generator) -> Tensor:
    """Return the hint [B, H]: a reminder of the tools that there are."""
    marks_B1 = torch.full((len(tools_BK2), 1), REMINDER)
    return torch.cat([marks_B1, listing(tools_BK2, draw=draw)], dim=1)


def _shuffled(num: int, size: int, *, draw: Generator) -> Tensor:
    return torch.rand(num, size, generator=draw).argsort(1)


def goal_of(prompts: Prompts, goals_B: Tensor) -> Tensor:
    """Return the goal [B, 2] that each episode is at, type and argument."""
    each_goal_BG2 = torch.stack([prompts.types_BG, prompts.arguments_BG], dim=-1)
    return each_goal_BG2[torch.arange(len(goals_B)), goals_B]


def right_call(prompts: Prompts, goals_B: Tensor) -> Tensor:
    """Return the call [B, 3] that meets the goal each episode is at."""
    types_B, arguments_B = goal_of(prompts, goals_B).unbind(1)
    tools_B2 = prompts.tools_BK2[torch.arange(len(goals_B)), types_B - TYPES]
    return torch.cat([tools_B2, arguments_B[:, None]], dim=1)


def result_of(replies_B3: Tensor, prompts: Prompts) -> Tensor:
    """Return the token [B] that answers each call: done, not found or malformed."""
    stems_B, suffixes_B, arguments_B = replies_B3.unbind(1)
    is_call_B = (
        ((stems_B >= STEMS) & (stems_B < SUFFIXES))
        & ((suffixes_B >= SUFFIXES) & (suffixes_B < ARGUMENTS))
        & (arguments_B >= ARGUMENTS)
    )
    is_listed_B = (prompts.tools_BK2 == replies_B3[:, None, :2]).all(2).any(1)
    results_B = torch.where(is_listed_B, DONE, NOT_FOUND)
    return torch.where(is_call_B, results_B, MALFORMED)
