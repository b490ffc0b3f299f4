"""Detect final messages that say nothing, or too much."""

from collections.abc import Iterator

from trainer.feedback.course import Course, found_turn
from trainer.feedback.detector import Detector
from trainer.records import Finding

# Words that any final message may have; more for each changed line, up to the most.
FREE_WORDS, WORDS_A_LINE, MAX_WORDS = 250, 2, 1000


def empty_messages(course: Course) -> Iterator[Finding]:
    """Yield a final message without a word to the user."""
    if course.final and not course.final.said:
        yield found_turn(
            course.final, kind="empty_message", severity=0.6, evidence="nothing is said"
        )


def overlong_messages(course: Course) -> Iterator[Finding]:
    """Yield a final message that is long for what was changed."""
    final = course.final
    num_words = len(final.said.split()) if final else 0
    lines = course.episode.patch.splitlines()
    num_changed = sum(it.startswith(("+", "-")) and it[:3] not in {"+++", "---"} for it in lines)
    allowed = min(FREE_WORDS + WORDS_A_LINE * num_changed, MAX_WORDS)
    if final and (lines or course.edits) and num_words > allowed:
        yield found_turn(
            final,
            kind="overlong_message",
            severity=0.3,
            evidence=f"{num_words} words for {num_changed} changed lines: {final.said}",
            num_words=allowed,
        )


DETECTORS = (
    Detector(kind="empty_message", find=empty_messages),
    Detector(kind="overlong_message", find=overlong_messages),
)
