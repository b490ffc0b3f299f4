"""Find what could have been better in an Episode, and tell whether another Reply mends it."""

from collections.abc import Iterable
from dataclasses import replace

from trainer.feedback.acts import identity
from trainer.feedback.course import course_of
from trainer.feedback.detector import Detector
from trainer.feedback.detectors import (
    calls,
    comments,
    errors,
    faults,
    files,
    message,
    plans,
    repeats,
    style,
    testing,
)
from trainer.records import Ending, Episode, Finding, Reply, ToolResult

# What is not the policy's doing shuts out all else that is found in the same Reply.
FAULTS = faults.DETECTORS
# The surest first: form, then answers, then the Episode as a whole.
DETECTORS: tuple[Detector, ...] = (
    *FAULTS,
    *calls.DETECTORS,
    *files.DETECTORS,
    *repeats.DETECTORS,
    *errors.DETECTORS,
    *testing.DETECTORS,
    *plans.DETECTORS,
    *message.DETECTORS,
    *style.DETECTORS,
    *comments.DETECTORS,
)
KINDS = tuple(it.kind for it in DETECTORS)


def scan(episode: Episode) -> tuple[Finding, ...]:
    """Return all Findings, in order of the Replies; of one Reply the most severe first.

    An Episode that a machine failed, or that we cut, has none: what is missing in it may be due
    to that. Beside an environment's or a parser's fault a Reply has no other.
    """
    if not episode.is_valid:
        return ()
    course = course_of(episode)
    return put_in_order([it for detector in DETECTORS for it in detector.find(course)])


def put_in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return Findings of one Episode, a judge's perhaps among them, as `scan` does."""
    found = tuple(findings)
    ours = {it.kind for it in FAULTS}
    spoilt = {(it.segment, it.reply) for it in found if it.kind in ours}
    kept = [it for it in found if it.kind in ours or (it.segment, it.reply) not in spoilt]
    return tuple(sorted(kept, key=lambda it: (it.segment, it.reply, -it.severity)))


def worst(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return one Finding a Reply, the most severe; the surer detector's of equals."""
    best: dict[tuple[int, int], Finding] = {}
    for finding in findings:
        place = (finding.segment, finding.reply)
        if place not in best or finding.severity > best[place].severity:
            best[place] = finding
    return tuple(best[place] for place in sorted(best))


def recheck(reply: Reply, finding: Finding, episode: Episode) -> bool:
    """Tell whether the fault is gone when a Reply stands in place of the one at fault.

    The same rule looks again, at the Episode up to there. A call that has no result, but stood in
    the old Reply too, gets its result: state and call are the same. A Reply that calls nothing
    mends no fault in a call, and one that the cap on tokens cut off mends nothing.

    Raises:
        ValueError: the Finding is of no detector here, a judge's perhaps.
    """
    detector = next((it for it in DETECTORS if it.kind == finding.kind), None)
    if detector is None:
        raise ValueError(f"no detector {finding.kind!r}, there are {', '.join(KINDS)}")
    if reply.stop == "length":
        return False
    course = course_of(_instead(reply, finding, episode))
    if detector.asks_call and not any(act.name in course.names for act in course.turns[-1].acts):
        return False
    place = (finding.segment, finding.reply)
    return all((it.segment, it.reply) != place for it in detector.find(course))


def _instead(reply: Reply, finding: Finding, episode: Episode) -> Episode:
    """Return the Episode up to a Finding's Reply, with another in its place."""
    segment = episode.segments[finding.segment]
    old = segment.replies[finding.reply]
    replies = (*segment.replies[: finding.reply], answered(reply, old))
    ended = replace(segment, replies=replies)
    segments = (*episode.segments[: finding.segment], ended)
    ending: Ending = "out_of_turns" if reply.calls else "finished"
    return replace(episode, segments=segments, ending=ending)


def answered(reply: Reply, old: Reply) -> Reply:
    """Give a Reply the results of the calls that it shares with an old one, each of them once."""
    known: dict[str, list[ToolResult]] = {}
    for call, result in zip(old.calls, old.results, strict=False):
        known.setdefault(identity(call), []).append(result)
    results: list[ToolResult] = list(reply.results)
    for call in reply.calls[len(results) :]:
        left = known.get(identity(call))
        if not left:
            break
        results.append(left.pop(0))
    return replace(reply, results=tuple(results))
