"""What a detector is: a name, the Findings that it takes from a Course, and how to check again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainer.feedback.course import Course
from trainer.records import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A rule about behaviour, pure over an Episode.

    Example: `Detector(kind="unknown_tool", find=unknown_tools, asks_call=True)`.
    """

    # Unique; also the name of its hint template.
    kind: str
    # Yields what it finds, each Reply at most once a fault.
    find: Callable[[Course], Iterator[Finding]]
    # Whether a Reply only mends the fault when it makes a call that is there.
    asks_call: bool = False
