"""Lay an Episode out turn by turn, as detectors read it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.feedback.acts import WRITING, Act
from trainer.records import Episode, Finding, Reply

MAX_EVIDENCE_CHARS = 240

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A Reply with its place and what became of its calls."""

    segment: int
    # Index in the Segment's replies.
    number: int
    reply: Reply
    acts: tuple[Act, ...]

    @property
    def said(self) -> str:
        """The text without the thinking."""
        # A template may have opened the thought in the header.
        return _THOUGHT.sub("", self.reply.text).rpartition("</think>")[2].strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How an Episode went."""

    episode: Episode
    turns: tuple[Turn, ...]
    # Of all turns, in order.
    acts: tuple[Act, ...]

    @property
    def final(self) -> Turn | None:
        """The message that the policy ended with; None where it did not end by itself."""
        last = self.turns[-1] if self.turns else None
        is_final = self.episode.ending == "finished" and last is not None and not last.reply.calls
        return last if is_final else None

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are there."""
        return tuple(tool.name for tool in self.episode.tools)

    @property
    def edits(self) -> tuple[Act, ...]:
        """Acts that surely changed files."""
        return tuple(act for act in self.acts if act.name in WRITING and act.status == "done")


def course_of(episode: Episode) -> Course:
    """Lay an Episode out."""
    turns = tuple(_turns(episode))
    acts = tuple(act for turn in turns for act in turn.acts)
    return Course(episode=episode, turns=turns, acts=acts)


def found_call(
    course: Course, act: Act, *, kind: str, severity: float, evidence: str, **facts: object
) -> Finding:
    """Return a Finding about one call."""
    turn = course.turns[act.turn]
    return Finding(
        segment=turn.segment,
        reply=turn.number,
        kind=kind,
        start=act.call.start,
        end=act.call.end,
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        severity=severity,
        facts=facts,
    )


def found_turn(
    turn: Turn, *, kind: str, severity: float, evidence: str, **facts: object
) -> Finding:
    """Return a Finding about a whole Reply."""
    return Finding(
        segment=turn.segment,
        reply=turn.number,
        kind=kind,
        start=turn.reply.start,
        end=turn.reply.end,
        evidence=evidence[:MAX_EVIDENCE_CHARS],
        severity=severity,
        facts=facts,
    )


def _turns(episode: Episode) -> Iterator[Turn]:
    flat = 0
    for segment, part in enumerate(episode.segments):
        for number, reply in enumerate(part.replies):
            results = (*reply.results, *[None] * len(reply.calls))
            acts = tuple(
                Act(turn=flat, call=call, result=result)
                for call, result in zip(reply.calls, results, strict=False)
            )
            yield Turn(segment=segment, number=number, reply=reply, acts=acts)
            flat += 1
