"""Detect calls that are made again though nothing can have changed."""

from collections.abc import Iterator

from trainer.feedback.acts import LOOKING, WRITING, Act
from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.records import Finding


def repeated_calls(course: Course) -> Iterator[Finding]:
    """Yield calls that got the same answer before, in the same context and the same state.

    A run may be repeated once: to see whether it is flaky, or whether something has ended. So may
    a call of a tool that is not known here, and only one that fails.
    """
    seen: dict[str, list[Act]] = {}
    segment = 0
    for act in course.acts:
        if course.turns[act.turn].segment != segment:
            # A summary has dropped what the calls before it gave back.
            segment = course.turns[act.turn].segment
            seen.clear()
        before = [it for it in seen.get(act.identity, []) if _is_repeat(act, it)]
        if len(before) > _num_allowed(act):
            yield found_call(course, act, kind="repeated_call", severity=0.5, evidence=act.identity)
        if act.may_change:
            seen = {act.identity: seen.get(act.identity, [])}
        seen.setdefault(act.identity, []).append(act)


def _is_repeat(act: Act, before: Act) -> bool:
    """Tell whether an act is one that the policy has seen the answer of."""
    if act.turn == before.turn or act.status != before.status or act.output != before.output:
        return False
    if act.name == "run_command":
        # One that changes something may well be needed twice.
        return not act.may_change
    if act.status == "done":
        return act.name in LOOKING or act.name == "run_tests"
    return act.status in {"failed", "refused"}


def _num_allowed(act: Act) -> int:
    is_sure = act.name in LOOKING or act.name in WRITING or act.status == "refused"
    return 0 if is_sure else 1


DETECTORS = (Detector(kind="repeated_call", find=repeated_calls),)
