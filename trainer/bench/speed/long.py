"""Sample long rollouts of many turns, in which some Replies have Targets.

Letters of shapes: B rollouts, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from transformers import PreTrainedModel

from trainer.bench.speed.models import NUM_BYTES
from trainer.engine import Request
from trainer.generate import LocalEngine
from trainer.records import Reply, Sample, Segment, Target
from trainer.seeds import derive

HEADER_TOKENS, HINT_TOKENS = 4, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the rollouts of a step are like."""

    num_prompts: int
    group: int
    prompt_tokens: int
    num_turns: int
    # Of a message of the policy, and of what comes back for it.
    said_tokens: int
    shown_tokens: int
    # One in so many rollouts has Targets.
    hinted_every: int
    num_targets: int


LONG = Shape(
    num_prompts=2,
    group=4,
    prompt_tokens=300,
    num_turns=16,
    said_tokens=64,
    shown_tokens=96,
    hinted_every=2,
    num_targets=2,
)
SHORT = replace(LONG, num_prompts=1, group=2, num_turns=3, said_tokens=16, shown_tokens=16)


def roll_out(model: PreTrainedModel, *, shape: Shape) -> list[Segment]:
    """Play all rollouts of a step in lock-step; what comes back for a message is random."""
    engine, draw = LocalEngine(model), np.random.default_rng(0)
    prompts = draw.integers(0, NUM_BYTES, (shape.num_prompts, shape.prompt_tokens))
    ids_BT = prompts.repeat(shape.group, axis=0)
    logprobs_BT = np.zeros(ids_BT.shape, dtype=np.float32)
    replies = []
    for turn in range(shape.num_turns):
        said = engine.generate([
            Request(
                ids=ids,
                max_new_tokens=shape.said_tokens,
                temperature=1.0,
                stop_ids=(),
                seed=derive(0, row, turn),
            )
            for row, ids in enumerate(ids_BT)
        ])
        replies.append(_reply(ids_BT.shape[1], num_tokens=shape.said_tokens))
        shown_BT = draw.integers(0, NUM_BYTES, (len(ids_BT), shape.shown_tokens))
        ids_BT = np.concatenate([ids_BT, [it.ids for it in said], shown_BT], axis=1)
        logprobs_BT = np.concatenate(
            [logprobs_BT, [it.logprobs for it in said], np.zeros(shown_BT.shape)], axis=1
        ).astype(np.float32)
    engine.close()
    # Nothing comes back for the last message.
    return [
        Segment(ids=ids, sampled=logprobs != 0, logprobs=logprobs, replies=tuple(replies))
        for ids, logprobs in zip(
            ids_BT[:, : replies[-1].end], logprobs_BT[:, : replies[-1].end], strict=True
        )
    ]


def _reply(start: int, *, num_tokens: int) -> Reply:
    return Reply(
        header=start - HEADER_TOKENS,
        start=start,
        end=start + num_tokens,
        text="",
        calls=(),
        results=(),
        stop="length",
        version=0,
    )


def with_targets(samples: Sequence[Sample], *, shape: Shape) -> list[Sample]:
    """Put Targets on Replies that are drawn from all."""
    draw = np.random.default_rng(1)
    return [
        sample
        if number % shape.hinted_every
        else replace(
            sample,
            targets=tuple(
                _target(sample.segment, int(reply), draw)
                for reply in draw.choice(shape.num_turns, shape.num_targets, replace=False)
            ),
        )
        for number, sample in enumerate(samples)
    ]


def _target(segment: Segment, number: int, draw: np.random.Generator) -> Target:
    reply = segment.replies[number]
    return Target(
        reply=number,
        kind="unknown_tool",
        hint_ids=draw.integers(0, NUM_BYTES, HINT_TOKENS),
        hint="",
        start=reply.start,
        end=reply.end,
    )
