"""Detect calls that cannot be carried out as they are written."""

import re
from collections.abc import Iterator

from pipeline.agent.schemas import Tool
from trainer.feedback.acts import Act
from trainer.feedback.course import Course, Turn, found_call, found_turn
from trainer.feedback.detector import Detector
from trainer.feedback.names import nearest
from trainer.feedback.schema import breaches, signature
from trainer.records import Finding

# Tools that a hint names.
MAX_LISTED = 40

_JSON_CALL = re.compile(r'"name"\s*:\s*"(?P<name>[\w.-]+)"\s*,\s*"(?:arguments|parameters)"\s*:')
_XML_CALL = re.compile(
    r"""<(?:function|invoke|tool)(?:=|\s+name=)["']?(?P<name>[\w.-]+)["']?\s*>"""
)
_KIMI_CALL = re.compile(r"(?:functions\.)?(?P<name>[\w-]+):\d+\s*<\|tool_call_argument_begin\|>")
_FORMS = (_JSON_CALL, _XML_CALL, _KIMI_CALL)
# How a message ends that ends with a call: prose goes on with words.
_CALL_END = re.compile(r"(?:[}\]>]|```)\s*\Z")


def unknown_tools(course: Course) -> Iterator[Finding]:
    """Yield calls of a tool that this environment does not have."""
    for act in course.acts:
        if act.name and course.names and act.name not in course.names and act.status != "done":
            yield found_call(
                course,
                act,
                kind="unknown_tool",
                severity=0.9,
                evidence=act.name,
                tools=nearest(act.name, course.names, limit=MAX_LISTED),
            )


def malformed_arguments(course: Course) -> Iterator[Finding]:
    """Yield calls that are no JSON, but for those that the cap on tokens cut off."""
    for act in course.acts:
        if act.call.error and act.status != "done" and not _is_cut(act, course.turns[act.turn]):
            tool = _tool(course, act.name)
            yield found_call(
                course,
                act,
                kind="malformed_arguments",
                severity=0.85,
                evidence=f"{act.call.error}: {act.call.raw}",
                signature=signature(tool) if tool else "",
            )


def schema_invalid(course: Course) -> Iterator[Finding]:
    """Yield calls whose arguments break the schema, where the tool refused them for it.

    A call that nobody has carried out is one that is tried in place of another.
    """
    for act in course.acts:
        tool = _tool(course, act.name)
        is_read = act.call.arguments is not None and not act.call.error
        if tool is None or not is_read or act.status not in {"refused", "unanswered"}:
            continue
        if broken := breaches(act.arguments, tool):
            yield found_call(
                course,
                act,
                kind="schema_invalid",
                severity=0.8,
                evidence=f"{broken[0].key}: {act.call.raw}",
                rule=broken[0].rule,
                signature=signature(tool),
            )


def wrong_formats(course: Course) -> Iterator[Finding]:
    """Yield Replies that call nothing, and end with a call of a tool in a format of elsewhere.

    The chat format's own marks are read where they stand, so marks that are left are another's.
    """
    for turn in course.turns:
        if turn.reply.calls or turn.reply.stop == "length" or _is_summary(turn, course):
            continue
        if not _CALL_END.search(turn.said):
            continue
        found = (it for form in _FORMS for it in form.finditer(turn.said))
        if called := [it for it in found if it["name"] in course.names]:
            yield found_turn(turn, kind="wrong_call_format", severity=0.9, evidence=called[0][0])


def _tool(course: Course, name: str) -> Tool | None:
    return next((tool for tool in course.episode.tools if tool.name == name), None)


def _is_summary(turn: Turn, course: Course) -> bool:
    """Tell whether a Reply ends a context that another follows: it may quote calls."""
    is_last = turn.number + 1 == len(course.episode.segments[turn.segment].replies)
    return is_last and turn.segment + 1 < len(course.episode.segments)


def _is_cut(act: Act, turn: Turn) -> bool:
    return turn.reply.stop == "length" and act is turn.acts[-1]


DETECTORS = (
    Detector(kind="unknown_tool", find=unknown_tools, asks_call=True),
    Detector(kind="malformed_arguments", find=malformed_arguments, asks_call=True),
    Detector(kind="wrong_call_format", find=wrong_formats, asks_call=True),
    Detector(kind="schema_invalid", find=schema_invalid, asks_call=True),
)
