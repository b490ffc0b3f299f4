"""Detect edits that leave code worse by a linter's rules."""

import re
from collections import Counter
from collections.abc import Iterator

from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.feedback.linter import NO_SYNTAX, Violation, violations
from trainer.feedback.texts import follow
from trainer.records import Finding

# Comparisons with these may be meant: they build expressions.
_COMPARISONS = frozenset({"E711", "E712"})
_BUILDS = re.compile(
    r"^\s*(?:from|import) (?:dask|numpy|pandas|peewee|polars|pyspark|sqlalchemy|sqlmodel)\b",
    re.MULTILINE,
)
# Imports that may be there for others: names passed on, and a look whether a module is there.
_UNUSED = "F401"
_PASSED_ON = re.compile(r"\s*from \.")


def style_regressions(course: Course) -> Iterator[Finding]:
    """Yield edits after which a file breaks a rule more often than before, up to the end.

    An edit may be half of a change: what is mended later, by whatever tool, is no fault. Silent
    where ruff is not installed, and on files whose text the Episode does not show whole, before
    the edit and at the end.
    """
    changes, last = follow(course)
    for change in changes:
        if change.before is None or change.path not in last or not change.path.endswith(".py"):
            continue
        worse = _worsened(change.before, change.after, path=change.path)
        lasting = {_key(it) for it in _worsened(change.before, last[change.path], path=change.path)}
        if left := [it for it in worse if _key(it) in lasting]:
            yield found_call(
                course,
                change.act,
                kind="style_regression",
                severity=0.4 if left[0].rule == NO_SYNTAX else 0.3,
                evidence=f"{change.path}:{left[0].line}: {left[0].rule} {left[0].message}",
                path=change.path,
                rules=sorted({it.rule for it in left}),
            )


def _worsened(before: str, after: str, *, path: str) -> list[Violation]:
    """Return what is found in a text that is not found in another, of rules broken more often."""
    now, earlier = violations(after, name=path), violations(before, name=path)
    if not now or earlier is None:
        return []
    more = Counter(it.rule for it in now) - Counter(it.rule for it in earlier)
    spare = Counter(map(_key, earlier))
    worse = []
    for violation in now:
        if spare[_key(violation)]:
            spare[_key(violation)] -= 1
        elif more[violation.rule] and not _may_be_meant(violation, after, path=path):
            worse.append(violation)
    return worse


def _key(violation: Violation) -> tuple[str, str]:
    # Lines move; what is said names what is wrong.
    return violation.rule, violation.message


def _may_be_meant(violation: Violation, text: str, *, path: str) -> bool:
    if violation.rule in _COMPARISONS:
        return _BUILDS.search(text) is not None
    if violation.rule != _UNUSED:
        return False
    line = text.split("\n")[violation.line - 1 : violation.line]
    is_passed_on = path.endswith("__init__.py") or any(map(_PASSED_ON.match, line))
    return is_passed_on or "find_spec" in violation.message


DETECTORS = (Detector(kind="style_regression", find=style_regressions),)
