"""Detect errors of tools that the policy walks past."""

from collections.abc import Iterator

from trainer.feedback.acts import LOOKING, RUNNING, Act
from trainer.feedback.claims import owns_up
from trainer.feedback.course import Course, found_turn
from trainer.feedback.detector import Detector
from trainer.records import Finding


def ignored_errors(course: Course) -> Iterator[Finding]:
    """Yield a final message right after a call that had no effect, and silent on it.

    Looking in vain has its answer, a command may end with any status, and what a tool that is not
    there was to do nobody knows: only calls that were to change something count.
    """
    final = course.final
    if final is None or course.episode.verdict == "solved":
        return
    lost = [act for turn in course.turns[-2:-1] for act in turn.acts if _is_lost(act, course)]
    if lost and not owns_up(final.said):
        yield found_turn(
            final,
            kind="tool_error_ignored",
            severity=0.7,
            evidence=f"{lost[-1].name}: {lost[-1].output}",
        )


def _is_lost(act: Act, course: Course) -> bool:
    if act.status not in {"failed", "refused"} or act.name not in course.names:
        return False
    if act.name in LOOKING | RUNNING or _is_as_wanted(act, course):
        return False
    others = (it for it in course.turns[act.turn].acts if it.status == "done")
    done = {path for it in others for path in it.paths}
    return not act.paths or not done.issuperset(act.paths)


def _is_as_wanted(act: Act, course: Course) -> bool:
    """Tell whether the files are as the call was to make them: it was made before, or is of use."""
    if act.name == "delete_files" and act.error == "FileNotFoundError":
        return True
    return any(it.status == "done" and it.identity == act.identity for it in course.acts)


DETECTORS = (Detector(kind="tool_error_ignored", find=ignored_errors),)
