"""Make Episodes, Segments and Targets of which only the numbers matter."""

from collections.abc import Sequence

import numpy as np

from trainer.records import Episode, Reply, Sample, Segment, Target, ToolCall

HEADER = 3


def reply(start: int, end: int, *, num_calls: int = 0) -> Reply:
    """Return a Reply whose header is the three tokens before it."""
    call = ToolCall(name="f", arguments={}, raw="", error="", start=start, end=end)
    return Reply(
        header=start - HEADER,
        start=start,
        end=end,
        text="",
        calls=(call,) * num_calls,
        results=(),
        stop="end",
        version=0,
    )


def segment(seed: int, *, spans: Sequence[tuple[int, int]], length: int, size: int = 64) -> Segment:
    """Return a Segment of random tokens below `size`; the policy sampled those in the spans."""
    draw = np.random.default_rng(seed)
    sampled = np.zeros(length, dtype=np.bool_)
    for start, end in spans:
        sampled[start:end] = True
    return Segment(
        ids=draw.integers(0, size, length),
        sampled=sampled,
        logprobs=np.where(sampled, -draw.random(length), 0).astype(np.float32),
        replies=tuple(reply(start, end) for start, end in spans),
    )


def target(seg: Segment, number: int, *, hint: Sequence[int] = (1, 2, 3, 4)) -> Target:
    """Return a Target on all of a Reply."""
    found = seg.replies[number]
    return Target(
        reply=number,
        kind="unknown_tool",
        hint_ids=np.array(hint, dtype=np.int64),
        hint="Tools: f.",
        start=found.start,
        end=found.end,
    )


def sample(
    seg: Segment, *, name: str = "0-a.0/0", advantage: float = 0.0, targets: Sequence[Target] = ()
) -> Sample:
    return Sample(id=name, segment=seg, advantage=advantage, targets=tuple(targets))


def episode(
    group: str, number: int, reward: float | None, *, segments: Sequence[Segment] = ()
) -> Episode:
    return Episode(
        id=f"{group}.{number}",
        group=group,
        number=number,
        prompt=group,
        tools=(),
        segments=tuple(segments),
        ending="infra" if reward is None else "finished",
        reward=reward,
        verdict="",
        detail="",
    )
