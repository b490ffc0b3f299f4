"""Detect what is not the policy's doing: failures of the environment and of the parser."""

from collections.abc import Iterator
from typing import get_args

from pipeline.agent.written import CallFormat, read_calls
from trainer.feedback.acts import Act
from trainer.feedback.course import Course, Turn, found_call
from trainer.feedback.detector import Detector
from trainer.records import Finding


def environment_faults(course: Course) -> Iterator[Finding]:
    """Yield calls that the environment failed."""
    for act in course.acts:
        if act.status == "fault":
            yield found_call(
                course, act, kind="environment_fault", severity=0.0, evidence=act.output
            )


def parser_faults(course: Course) -> Iterator[Finding]:
    """Yield calls that were written well and read wrong.

    Whatever the parser of calls does not take either is the policy's: a call without an end, a
    number that is no JSON, a name in a wrapping that is not of the format.
    """
    for act in course.acts:
        if why := _misread(act, course.turns[act.turn], course.names):
            yield found_call(
                course, act, kind="parser_fault", severity=0.0, evidence=f"{why}: {act.call.raw}"
            )


def _misread(act: Act, turn: Turn, names: tuple[str, ...]) -> str:
    """Return what went wrong with the reading of a call; empty where nothing did."""
    if not act.call.error and (not names or act.name in names):
        return ""
    if act.status == "done":
        return "carried out, and yet called wrong"
    for form in get_args(CallFormat):
        for written in read_calls(turn.reply.text, form=form):
            if written.raw == act.call.raw and not written.error and written.name in names:
                return "well written, and yet not read"
    return ""


DETECTORS = (
    Detector(kind="environment_fault", find=environment_faults),
    Detector(kind="parser_fault", find=parser_faults),
)
