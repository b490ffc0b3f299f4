"""Read the lines of `inside/run_suite.py`, leaving out what it cannot have written."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from pipeline.task.record import Outcome

Check = Callable[[Any], bool]

# Such text can be written to no file of ours.
SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DURATION_S = 1e9


def read_lines(results: bytes) -> Iterator[dict[str, Any]]:
    """Yield the well-formed messages of a run.

    Code under test can write to the results pipe as well, and a kill tears a line: whatever is
    there, the answer to it is a test that did not run and never an exception.
    """
    for line in results.split(b"\n"):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and _is_well_formed(message):
            yield message


def _is_well_formed(message: Mapping[str, Any]) -> bool:
    kind = message.get("kind")
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    return fields is not None and all(check(message.get(name)) for name, check in fields.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not SURROGATE.search(value)


def _is_outcome(value: object) -> bool:
    return isinstance(value, str) and value in get_args(Outcome)


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < MAX_DURATION_S


def _is_number(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_name(value: object) -> bool:
    return isinstance(value, list) and list(map(type, value)) == [str, int] and _is_text(value[0])


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


# What each kind of message holds.
FIELDS: dict[str, dict[str, Check]] = {
    "collected": {"ids": _list_of(_is_text)},
    "collect_error": {"path": _is_text, "exception": _is_text, "message": _is_text},
    "test": {
        "id": _is_text,
        "outcome": _is_outcome,
        "duration": _is_duration,
        "exception": _is_text,
        "message": _is_text,
    },
    "functions": {"path": _is_text, "names": _list_of(_is_name)},
    "reached": {"id": _is_text, "functions": _list_of(_is_number)},
    "import_time": {"functions": _list_of(_is_number), "collection": _list_of(_is_number)},
    "end": {},
}
