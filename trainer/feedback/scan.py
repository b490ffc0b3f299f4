"""Find what could have been better in an Episode, and tell whether another Reply mends it."""

from dataclasses import replace

from trainer.feedback.course import course_of
from trainer.feedback.detector import Detector
from trainer.feedback.detectors import (
    calls,
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
    found = [it for detector in DETECTORS for it in detector.find(course)]
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
    mends no fault in a call.

    Raises:
        ValueError: the Finding is of no detector here, a judge's perhaps.
    """
    detector = next((it for it in DETECTORS if it.kind == finding.kind), None)
    if detector is None:
        raise ValueError(f"no detector {finding.kind!r}, there are {', '.join(KINDS)}")
    course = course_of(_instead(reply, finding, episode))
    if detector.asks_call and not any(act.name in course.names for act in course.turns[-1].acts):
        return False
    place = (finding.segment, finding.reply)
    return all((it.segment, it.reply) != place for it in detector.find(course))


def _instead(reply: Reply, finding: Finding, episode: Episode) -> Episode:
    """Return the Episode up to a Finding's Reply, with another in its place."""
    segment = episode.segments[finding.segment]
    old = segment.replies[finding.reply]
    replies = (*segment.replies[: finding.reply], _answered(reply, old))
    ended = replace(segment, replies=replies)
    segments = (*episode.segments[: finding.segment], ended)
    ending: Ending = "out_of_turns" if reply.calls else "finished"
    return replace(episode, segments=segments, ending=ending)


def _answered(reply: Reply, old: Reply) -> Reply:
    known = {it.raw: result for it, result in zip(old.calls, old.results, strict=False)}
    results: list[ToolResult] = list(reply.results)
    for call in reply.calls[len(results) :]:
        if call.raw not in known:
            break
        results.append(known[call.raw])
    return replace(reply, results=tuple(results))
