"""Lay an Episode out turn by turn, as detectors read it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.task.patch_text import PatchError, parse_patch
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
    # What is left of the work, by path: the lines that the final diff adds, without white space
    # around them. A file that is removed adds none.
    added: Mapping[str, frozenset[str]]

    @property
    def final(self) -> Turn | None:
        """The message that the policy ended with; None where it did not end by itself."""
        last = self.turns[-1] if self.turns else None
        if self.episode.ending != "finished" or last is None:
            return None
        # What the cap on tokens cut off is not all that it had to say.
        return None if last.reply.calls or last.reply.stop == "length" else last

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
    return Course(episode=episode, turns=turns, acts=acts, added=_added(episode.patch))


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


def _added(patch: str) -> dict[str, frozenset[str]]:
    """Return the lines that a diff adds to each file; nothing for what is no diff."""
    try:
        files = parse_patch(patch)
    except PatchError:
        return {}
    return {
        file.path: frozenset(
            line.strip() for hunk in file.hunks for sign, line in hunk.lines if sign == "+"
        )
        for file in files
    }


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
