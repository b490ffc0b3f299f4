"""The records that flow through the trainer: from a call of a tool to a Sample that is trained on.

Letters of shapes: T tokens of a Segment, H tokens of a hint, L layers with a router, K experts of
a token.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.agent.schemas import Tool

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Experts = NDArray[np.int16]

# How the policy's message ended: with its end token, or at the cap on new tokens.
Stop = Literal["end", "length"]
# How an Episode ended. The policy's own doing: `finished` with a message that calls no tool,
# `out_of_turns`, `overlong` when its context was full. Ours, and never the policy's: `cut` by a
# budget of the trainer, `infra` when a machine failed.
Ending = Literal["finished", "out_of_turns", "overlong", "cut", "infra"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that the policy wrote."""

    # Empty when the name itself cannot be read.
    name: str
    # None when they are no JSON object.
    arguments: dict[str, object] | None
    # What stood between the marks of a call, as written.
    raw: str
    # Why it cannot be carried out: bad JSON, no name; empty for a well-formed call.
    error: str
    # Tokens of the Segment: first, one past the last; marks included.
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What came back for a call; one a call, in order."""

    ok: bool
    text: str
    # The environment failed, not the policy: time-outs, a broken sandbox.
    is_fault: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One message that the policy sampled, with what came back.

    Example: `Reply(header=40, start=43, end=61, text="…", calls=(…,), results=(…,), …)`.
    """

    # Token of the Segment at which the header of the message begins: a hint goes in front of it.
    header: int
    # First sampled token; one past the last, the end token included.
    start: int
    end: int
    # Decoded, without the end token.
    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    stop: Stop
    # Version of the weights that sampled it.
    version: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """Tokens as one context held them; a summary begins the next Segment of an Episode."""

    # [T], each once, as sampled or rendered.
    ids: Ids
    # [T], True for what the policy sampled: these are trained, all others never.
    sampled: Flags
    # [T], log-probability of a sampled token under the weights that sampled it; 0 elsewhere.
    logprobs: Floats
    replies: tuple[Reply, ...]
    # [T, L, K], the experts that the engine chose, which training chooses again; -1 where it did
    # not say, None where the choice is free.
    experts: Experts | None = None


def pad_experts(experts: Experts, length: int) -> Experts:
    """Return the experts of a Segment's first tokens as those [T, L, K] of all its tokens."""
    padding = ((0, length - len(experts)), (0, 0), (0, 0))
    return np.pad(experts, padding, constant_values=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Episode:
    """One try of the policy at a prompt."""

    # `<group>.<number>`.
    id: str
    # All tries at one prompt of one step: `<position in the stream>-<prompt>`.
    group: str
    number: int
    # Id of the Task, or what else names the prompt.
    prompt: str
    tools: tuple[Tool, ...]
    segments: tuple[Segment, ...]
    ending: Ending
    # None where nothing was learnt: `infra`, `cut`.
    reward: float | None
    # Of the Grade (`solved`, `unsolved`, `tampered`), or the environment's own word.
    verdict: str
    # One line: why.
    detail: str
    # Unified diff of the work; empty where there is none.
    patch: str = ""
    # Label of the monitor; empty when none looked.
    monitored: str = ""
    # Wall seconds.
    seconds: float = 0.0

    @property
    def is_valid(self) -> bool:
        """Tell whether it counts: in the baseline of its group, and in the loss."""
        return self.reward is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a detector found in one Reply that could have been better.

    Example: `Finding(segment=0, reply=3, kind="unknown_tool", start=90, end=92, …)`.
    """

    segment: int
    # Index in the Segment's replies.
    reply: int
    # Name of the detector.
    kind: str
    # Tokens of the Segment that are at fault: first, one past the last.
    start: int
    end: int
    # Quoted from the Episode: what shows it.
    evidence: str
    # 0 to 1; of several in one Reply the highest is distilled.
    severity: float
    # What its hint needs: names and plain values.
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A Reply that is pulled towards what the policy would say after a hint.

    The teacher reads `ids[:header] + hint_ids + ids[header:end]`; the student's own context stays.
    """

    # Index in the Segment's replies.
    reply: int
    kind: str
    # [H], a whole message.
    hint_ids: Ids
    # The hint as text, for people.
    hint: str
    # Sampled tokens of the Segment that the KL is on: first, one past the last.
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One Segment as the loss takes it."""

    # Id of the Episode and number of the Segment: `<episode>/<segment>`.
    id: str
    segment: Segment
    # Of the Episode, the same for each of its sampled tokens.
    advantage: float
    targets: tuple[Target, ...]
