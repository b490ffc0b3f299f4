"""Detect errors of tools that the policy walks past."""

from collections.abc import Iterator

from trainer.feedback.acts import LOOKING, RUNNING, Act
from trainer.feedback.claims import owns_up
from trainer.feedback.course import Course, found_turn
from trainer.feedback.detector import Detector
from trainer.records import Finding


def ignored_errors(course: Course) -> Iterator[Finding]:
    """Yield a final message right after a call that had no effect, and silent on it.

    Looking in vain has its answer, and a command may end with any status: only calls that were to
    change something count.
    """
    final = course.final
    if final is None or course.episode.verdict == "solved":
        return
    lost = [
        act for turn in course.turns[-2:-1] for act in turn.acts if _is_lost(act, among=turn.acts)
    ]
    if lost and not owns_up(final.said):
        yield found_turn(
            final,
            kind="tool_error_ignored",
            severity=0.7,
            evidence=f"{lost[-1].name}: {lost[-1].output}",
        )


def _is_lost(act: Act, *, among: tuple[Act, ...]) -> bool:
    if act.status not in {"failed", "refused"} or act.name in LOOKING | RUNNING:
        return False
    done = {path for it in among if it.status == "done" for path in it.paths}
    return not act.paths or not done.issuperset(act.paths)


DETECTORS = (Detector(kind="tool_error_ignored", find=ignored_errors),)
