"""Detect edits that leave code worse by a linter's rules, or that think aloud in comments."""

import re
from collections import Counter
from collections.abc import Iterator

from trainer.feedback.acts import Act
from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.feedback.linter import NO_SYNTAX, Violation, violations
from trainer.feedback.texts import Change, changes_in
from trainer.records import Finding

# First words of somebody who thinks, not of a text on what code does.
_ALOUD = re.compile(
    r"#\s*(?:wait\b|hmm+\b|oops\b|let me\b|let's (?:see|try|check)\b|actually,|on second thought"
    r"|i (?:think|guess|should|need to|will|am not sure)\b|i'(?:ll|m)\b|not sure (?:if|why|how)\b)",
    re.IGNORECASE,
)


def style_regressions(course: Course) -> Iterator[Finding]:
    """Yield edits after which a file breaks a rule more often than before, up to the end.

    An edit may be half of a change: what a later one mends is no fault. Silent where ruff is not
    installed, and on files whose text the Episode does not show whole.
    """
    changes = [it for it in changes_in(course) if it.path.endswith(".py")]
    last = {it.path: it for it in changes}
    for change in changes:
        worse = _worsened(change, change.after)
        lasting = {it.rule for it in _worsened(change, last[change.path].after)}
        left = [it for it in worse if it.rule in lasting]
        if left:
            yield found_call(
                course,
                change.act,
                kind="style_regression",
                severity=0.4 if left[0].rule == NO_SYNTAX else 0.3,
                evidence=f"{change.path}:{left[0].line}: {left[0].rule} {left[0].message}",
                path=change.path,
                rules=sorted({it.rule for it in left}),
            )


def loud_comments(course: Course) -> Iterator[Finding]:
    """Yield edits that add comments in which somebody thinks."""
    for act in course.edits:
        if not any(path.endswith(".py") for path in act.paths):
            continue
        before = {line.strip() for old in _texts(act, "old") for line in old.splitlines()}
        added = [
            line.strip()
            for new in _texts(act, "new", "content")
            for line in new.splitlines()
            if line.strip() not in before and _ALOUD.search(line)
        ]
        if added:
            yield found_call(course, act, kind="loud_comment", severity=0.3, evidence=added[0])


def _worsened(change: Change, after: str) -> list[Violation]:
    """Return what is found in a text beyond what was in the file before the change."""
    now = violations(after, name=change.path)
    before = violations(change.before or "", name=change.path)
    if not now or before is None or change.before is None:
        return []
    is_package = change.path.endswith("__init__.py")
    spare = Counter(it.rule for it in before)
    worse = []
    for violation in now:
        if spare[violation.rule]:
            spare[violation.rule] -= 1
        elif not (is_package and violation.rule == "F401"):
            worse.append(violation)
    return worse


def _texts(act: Act, *keys: str) -> Iterator[str]:
    edits = act.arguments.get("edits")
    for holder in (act.arguments, *(edits if isinstance(edits, list) else ())):
        if isinstance(holder, dict):
            yield from (value for key in keys if isinstance(value := holder.get(key), str))


DETECTORS = (
    Detector(kind="style_regression", find=style_regressions),
    Detector(kind="loud_comment", find=loud_comments),
)
