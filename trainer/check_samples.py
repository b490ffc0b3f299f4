"""Make what a check measures on: a few short Segments that an engine has sampled."""

import numpy as np

from trainer.chat import Chat
from trainer.engine import Generated, Request
from trainer.env import Message
from trainer.records import Reply, Sample, Segment, Target, pad_experts
from trainer.seeds import derive
from trainer.tries import RolloutConfig

# Contexts of different lengths, and tokens that are sampled after each.
NUM_CONTEXTS, NUM_NEW = 4, 24


def make_requests(chat: Chat, config: RolloutConfig, *, seed: int) -> list[Request]:
    """Return requests with contexts of different lengths."""
    contexts = [
        chat.prompt([Message(role="user", content="Say anything. " * (1 + 3 * number))], ())
        for number in range(NUM_CONTEXTS)
    ]
    return [
        Request(
            ids=context.ids,
            max_new_tokens=NUM_NEW,
            temperature=config.temperature,
            stop_ids=chat.stop_ids,
            seed=derive(seed, "check", number),
            wants_experts=config.router_replay,
        )
        for number, context in enumerate(contexts)
    ]


def segment_of(request: Request, generated: Generated) -> Segment:
    """Return what came back as a Segment of one Reply."""
    start = len(request.ids)
    experts = generated.experts
    ids = np.concatenate([request.ids, generated.ids])
    reply = Reply(
        header=start - 1,
        start=start,
        end=len(ids),
        text="",
        calls=(),
        results=(),
        stop=generated.stop,
        version=generated.version,
    )
    return Segment(
        ids=ids,
        sampled=np.arange(len(ids)) >= start,
        logprobs=np.concatenate([np.zeros(start, np.float32), generated.logprobs]),
        replies=(reply,),
        experts=None if experts is None else pad_experts(experts, len(ids)),
    )


def with_empty_hint(sample: Sample) -> Sample:
    """Return a Sample with a Target whose hint says nothing."""
    reply = sample.segment.replies[0]
    target = Target(
        reply=0,
        kind="check",
        hint_ids=np.empty(0, np.int64),
        hint="",
        start=reply.start,
        end=reply.end,
    )
    return Sample(
        id=sample.id, segment=sample.segment, advantage=sample.advantage, targets=(target,)
    )
