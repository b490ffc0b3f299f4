"""Detect what is not the policy's doing: failures of the environment and of the parser."""

import json
import re
from collections.abc import Iterator

from trainer.feedback.acts import Act
from trainer.feedback.course import Course, found_call
from trainer.feedback.detector import Detector
from trainer.records import Finding

# How formats wrap the name of a tool: `functions.read_file:0`.
_WRAPPED = re.compile(r"(?:functions?|tools?|default_api)[.:/](?P<name>[^:]+)(?::\d+)?")


def environment_faults(course: Course) -> Iterator[Finding]:
    """Yield calls that the environment failed."""
    for act in course.acts:
        if act.status == "fault":
            yield found_call(
                course, act, kind="environment_fault", severity=0.0, evidence=act.output
            )


def parser_faults(course: Course) -> Iterator[Finding]:
    """Yield calls that were written well and read wrong."""
    for act in course.acts:
        if why := _misread(act, course.names):
            yield found_call(
                course, act, kind="parser_fault", severity=0.0, evidence=f"{why}: {act.call.raw}"
            )


def _misread(act: Act, names: tuple[str, ...]) -> str:
    """Return what the parser did; empty when it did well."""
    wrapped = _WRAPPED.fullmatch(act.name)
    if act.name not in names and wrapped and wrapped["name"] in names:
        return "the name was left in its wrapping"
    if act.status == "done" and (act.call.error or (names and act.name not in names)):
        return "carried out, and yet called wrong"
    if act.call.error and _names_tool(act.call.raw, names):
        return "well written, and yet not read"
    return ""


def _names_tool(raw: str, names: tuple[str, ...]) -> bool:
    """Tell whether a text is a call as Hermes writes it, of a tool that is there."""
    try:
        written = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    match written:
        case {"name": str(name), "arguments": dict(), **rest}:
            return name in names and not rest
    return False


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


DETECTORS = (
    Detector(kind="environment_fault", find=environment_faults),
    Detector(kind="parser_fault", find=parser_faults),
)
