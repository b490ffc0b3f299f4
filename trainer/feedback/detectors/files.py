"""Detect calls of file tools that do not fit the files that are there."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from trainer.feedback.acts import WRITING, Act, plain_path
from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.feedback.names import distance
from trainer.records import Finding

# Paths that a hint names.
MAX_NEAR = 5

_OPENING = frozenset({"read_file", "edit_file", "edit_files"})
# What these show are paths from the top of the tree; elsewhere any mention may have led there.
_LISTING = frozenset({"list_files", "search"})
_MISSING = frozenset({"FileNotFoundError", "NotADirectoryError"})
_QUOTED = re.compile(r"'([^']+)'\s*\Z")
_PLACES = re.compile(
    r"ValueError: `old` must stand exactly once in (?P<path>.+), it stands (?P<num>\d+) times",
    re.DOTALL,
)


def missing_files(course: Course) -> Iterator[Finding]:
    """Yield calls that open a path of which the policy could read that nothing is there.

    A guess is free: the path may stand in the request. A call that nobody has carried out is one
    that is tried in place of another, and is held to the same.
    """
    for act in course.acts:
        path = _missing_path(act) if act.name in _OPENING else ""
        before = [it for it in course.acts if it.turn < act.turn]
        context = [it for it in before if _segment(course, it) == _segment(course, act)]
        if path and _is_told(path, context) and not _was_shown(path, before):
            yield found_call(
                course,
                act,
                kind="missing_file",
                severity=0.5,
                evidence=f"{path}: {act.output}",
                paths=_near(path, before),
                listing=sorted(_LISTING & {*course.names}),
            )


def unmatched_edits(course: Course) -> Iterator[Finding]:
    """Yield edits whose text does not stand exactly once in the file."""
    for number, act in enumerate(course.acts):
        found = _PLACES.match(act.output) if act.status == "failed" else None
        if found is None or act.name not in {"edit_file", "edit_files"}:
            continue
        path = plain_path(found["path"])
        yield found_call(
            course,
            act,
            kind="edit_without_match",
            severity=0.6,
            evidence=act.output,
            path=path,
            places=int(found["num"]),
            state=_state(path, course.acts[:number]),
        )


def _segment(course: Course, act: Act) -> int:
    return course.turns[act.turn].segment


def _missing_path(act: Act) -> str:
    """Return the path that was not there when a call opened it, or that a call is yet to open."""
    if act.status == "unanswered":
        return next(iter(act.paths), "")
    if act.status != "failed" or act.error not in _MISSING:
        return ""
    quoted = _QUOTED.search(act.output)
    return plain_path(quoted[1]) if quoted else next(iter(act.paths), "")


def _is_told(path: str, before: Sequence[Act]) -> bool:
    """Tell whether a miss or a list says that nothing is there, and no call since may have put it.

    Lists hold all that is below their folder, but for folders with a dot.
    """
    told = False
    for act in before:
        if path == _missing_path(act) or (act.name == "list_files" and _is_left_out(path, act)):
            told = True
        elif act.may_change and (act.name not in WRITING or path in act.paths):
            told = False
    return told


def _is_left_out(path: str, act: Act) -> bool:
    given = act.arguments.get("path", ".")
    if act.status != "done" or act.is_cut or not isinstance(given, str):
        return False
    folder = plain_path(given)
    below = path if folder == "." else path.removeprefix(f"{folder}/")
    is_below = not path.startswith(("/", "..")) if folder == "." else below != path
    is_hidden = any(part.startswith(".") for part in below.split("/")[:-1])
    listed = {plain_path(line) for line in act.output.split("\n") if line}
    return is_below and not is_hidden and path not in listed


def _was_shown(path: str, before: Sequence[Act]) -> bool:
    """Tell whether the policy may have the path from the environment, or made it itself."""
    listed = re.compile(rf"^{re.escape(path)}(?::|$)", re.MULTILINE)
    mentioned = re.compile(re.escape(posixpath.basename(path)))
    return any(
        path in act.paths or (listed if act.name in _LISTING else mentioned).search(act.output)
        for act in before
        if act.status == "done" or act.name == "run_command"
    )


def _near(path: str, before: Sequence[Act]) -> list[str]:
    """Return paths that exist, as far as the Episode shows, nearest first."""
    shown = dict.fromkeys(it for act in before if act.status == "done" for it in _shown_by(act))
    gone = {it for act in before if act.name == "delete_files" for it in act.paths}
    same = posixpath.basename(path)
    there = [it for it in shown if it not in gone]
    key = {it: (posixpath.basename(it) != same, distance(path, it), it) for it in there}
    return sorted(there, key=lambda it: key[it])[:MAX_NEAR]


def _shown_by(act: Act) -> Iterator[str]:
    if act.name == "list_files":
        yield from (plain_path(line) for line in act.output.split("\n") if line and "…" not in line)
    elif act.name != "delete_files":
        yield from act.paths if act.name != "search" else ()


def _state(path: str, before: Sequence[Act]) -> str:
    """Return how the policy knows the file: `unread`, `changed` since it was read, `read`."""
    state = "unread"
    for act in before:
        if act.status == "done" and path in act.paths:
            if act.name == "read_file":
                state = "read"
            elif act.name != "search":
                state = "changed"
    return state


DETECTORS = (
    Detector(kind="edit_without_match", find=unmatched_edits, asks_call=True),
    Detector(kind="missing_file", find=missing_files, asks_call=True),
)
