"""Detect comments in which somebody thinks aloud."""

import re
from collections.abc import Iterator

from trainer.feedback.acts import WRITING, Act
from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.records import Finding

# First words of somebody who thinks, not of a text on what code does: a comment may well tell to
# wait for a lock, or what `i` will be.
_ALOUD = re.compile(
    r"#\s*(?i:wait(?:[,!\u2026]|\.\.|,? (?:actually|no)\b|\s*[\u2013\u2014-] )"
    r"|hmm+\b|oops\b|on second thought\b|let's (?:see|try|check)\b|not sure (?:if|why|how)\b"
    r"|let me (?:check|double|fix|first|look|now|re|re\w+|see|simplify|think|try|verify)\b"
    r"|actually,? (?:I|let|no|wait|we (?:can|could|need|should))\b)"
    r"|#\s*I (?:think|guess|should|need to|will|am not sure)\b|#\s*I'(?:ll|m)\b"
)


def loud_comments(course: Course) -> Iterator[Finding]:
    """Yield edits that add comments in which somebody thinks, and that are left in the work."""
    for act in course.acts:
        if act.name not in WRITING or act.status not in {"done", "unanswered"}:
            continue
        if not any(path.endswith(".py") for path in act.paths):
            continue
        before = {line.strip() for old in _texts(act, "old") for line in old.splitlines()}
        added = (
            line.strip()
            for new in _texts(act, "new", "content")
            for line in new.splitlines()
            if line.strip() not in before and _is_loud(line)
        )
        if left := [line for line in added if _is_left(line, act, course)]:
            yield found_call(course, act, kind="loud_comment", severity=0.3, evidence=left[0])


def _is_loud(line: str) -> bool:
    found = _ALOUD.search(line)
    if found is None:
        return False
    # Inside a text the sign begins no comment.
    code = line[: found.start()]
    return not (code.count("'") % 2 or code.count('"') % 2)


def _is_left(line: str, act: Act, course: Course) -> bool:
    """Tell whether the work ends with a line; a call that is only tried has it for sure."""
    return act.status == "unanswered" or any(
        line in course.added.get(path, frozenset()) for path in act.paths
    )


def _texts(act: Act, *keys: str) -> Iterator[str]:
    edits = act.arguments.get("edits")
    for holder in (act.arguments, *(edits if isinstance(edits, list) else ())):
        if isinstance(holder, dict):
            yield from (value for key in keys if isinstance(value := holder.get(key), str))


DETECTORS = (Detector(kind="loud_comment", find=loud_comments),)
