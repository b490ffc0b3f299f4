"""Make the rollouts that trainers are compared on: several turns, of unequal lengths."""

from dataclasses import asdict, dataclass, replace

import numpy as np
from transformers import PreTrainedModel

from trainer.bench.speed.models import NUM_BYTES
from trainer.records import Episode, Segment
from trainer.scoring import measure_logprobs

PROMPT_TOKENS = 80
# Tokens of a message of the policy, and of the result of its call.
SAID_TOKENS, SHOWN_TOKENS = 40, 40
MIN_TURNS, MAX_TURNS = 1, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One try, as plain lists."""

    group: int
    prompt_ids: list[int]
    # Messages of the policy and results of its calls in turn.
    completion_ids: list[int]
    # 1 for what the policy sampled.
    mask: list[int]
    # 0 for what it did not sample.
    logprobs: list[float]
    reward: float

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self)


def make_steps(
    model: PreTrainedModel, *, num_steps: int, num_prompts: int, group: int
) -> list[list[Rollout]]:
    """Return the rollouts of each step, with the log-probabilities that the model gives them."""
    draw = np.random.default_rng(0)
    return [
        [
            _rollout(model, draw, prompt_ids=prompt_ids, group=number)
            for number in range(num_prompts)
            for prompt_ids in [draw.integers(0, NUM_BYTES, PROMPT_TOKENS).tolist()]
            for _ in range(group)
        ]
        for _ in range(num_steps)
    ]


def _rollout(
    model: PreTrainedModel, draw: np.random.Generator, *, prompt_ids: list[int], group: int
) -> Rollout:
    num_turns = int(draw.integers(MIN_TURNS, MAX_TURNS + 1))
    turn = [1] * SAID_TOKENS + [0] * SHOWN_TOKENS
    # The last message calls nothing.
    mask = (turn * num_turns)[:-SHOWN_TOKENS]
    rollout = Rollout(
        group=group,
        prompt_ids=prompt_ids,
        completion_ids=draw.integers(0, NUM_BYTES, len(mask)).tolist(),
        mask=mask,
        logprobs=[0.0] * len(mask),
        reward=float(draw.integers(0, 2)),
    )
    (logprobs,) = measure_logprobs(model, [to_segment(rollout)], temperature=1.0)
    return replace(rollout, logprobs=logprobs[len(prompt_ids) :].tolist())


def to_segment(rollout: Rollout) -> Segment:
    """Return the one context of a rollout."""
    before = len(rollout.prompt_ids)
    return Segment(
        ids=np.array(rollout.prompt_ids + rollout.completion_ids, dtype=np.int64),
        sampled=np.array([0] * before + rollout.mask, dtype=np.bool_),
        logprobs=np.array([0.0] * before + rollout.logprobs, dtype=np.float32),
        replies=(),
    )


def to_episodes(rollouts: list[Rollout]) -> list[Episode]:
    """Return the rollouts of a step as Episodes."""
    return [
        Episode(
            id=f"{rollout.group}.{number}",
            group=str(rollout.group),
            number=number,
            prompt=str(rollout.group),
            tools=(),
            segments=(to_segment(rollout),),
            ending="finished",
            reward=rollout.reward,
            verdict="",
            detail="",
        )
        for number, rollout in enumerate(rollouts)
    ]
