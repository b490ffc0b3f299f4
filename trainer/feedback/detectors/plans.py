"""Detect plans that are made and left open."""

import re
from collections.abc import Iterator, Mapping

from trainer.feedback.acts import Act
from trainer.feedback.claims import owns_up
from trainer.feedback.course import Course, found_turn
from trainer.feedback.detector import Detector
from trainer.records import Finding

_PLANNING = re.compile(r"todo|to_do|\bplan\b|_plan\b|\bplan_|tasks?_list|checklist", re.IGNORECASE)
# Items that the final message itself does.
_TELLING = re.compile(r"\b(?:summ\w+|report|explain|answer|final message)", re.IGNORECASE)
_OPEN = frozenset({"pending", "in_progress", "in progress", "open", "todo", "not_started"})


def unfinished_plans(course: Course) -> Iterator[Finding]:
    """Yield a final message that leaves items of a plan open, and does not say so."""
    plans = [act for act in course.acts if _PLANNING.search(act.name) and act.status == "done"]
    items = _items(plans[-1]) if plans else ()
    left = [name for name, status in items if status in _OPEN and not _TELLING.search(name)]
    if course.final and left and not owns_up(course.final.said):
        yield found_turn(
            course.final,
            kind="unfinished_plan",
            severity=0.5,
            evidence=f"open: {'; '.join(left)}",
            planner=plans[-1].name,
            num_open=len(left),
        )


def _items(act: Act) -> tuple[tuple[str, str], ...]:
    """Return names and statuses of the items that a call writes, all of them."""
    for value in act.arguments.values():
        if isinstance(value, list) and value:
            found = [_item(it) for it in value if isinstance(it, Mapping)]
            if len(found) == len(value) and all(status for _, status in found):
                return tuple(found)
    return ()


def _item(item: Mapping[str, object]) -> tuple[str, str]:
    texts = [value for key, value in item.items() if isinstance(value, str) and key != "status"]
    status = item.get("status")
    return max(texts, key=len, default=""), status.lower() if isinstance(status, str) else ""


DETECTORS = (Detector(kind="unfinished_plan", find=unfinished_plans),)
