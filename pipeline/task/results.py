"""Read the lines of `inside/run_suite.py`, leaving out what it cannot have written."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, get_args

from pipeline.task.record import Outcome
from pipeline.task.traced import StretchKind

Check = Callable[[Any], bool]

# Such text can be written to no file of ours.
SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DURATION_S = 1e9
# Of a trace, as in `inside/trace_store.py`; a set of them has a bit for each.
MAX_MARKS = 2**22
BITS = re.compile(f"[0-9a-f]{{1,{MAX_MARKS // 4}}}")
# Stands for the number of a line that has none.
FORK = -1


def read_lines(results: bytes, *, nonce: str) -> tuple[list[dict[str, Any]], str]:
    """Return the recorder's messages, and why the pipe cannot be trusted (empty when it can).

    Code under test can write to the results pipe as well, and a kill tears a line: whatever is
    there, the answer to it is a test that did not run and never an exception. Each line is the
    nonce of the run, the number of the line and a JSON object; the last may be torn. A process
    that the run forked has no numbers, and nothing to say but alarms.
    """
    messages: list[dict[str, Any]] = []
    forks: list[dict[str, Any]] = []
    *lines, tail = results.split(b"\n")
    forged = ""
    for line in lines:
        number, message = _read_line(line, nonce=nonce)
        if message is None:
            forged = forged or f"line {len(messages)} is not of the recorder: {line[:60]!r}"
        elif number == FORK and message["kind"] == "alarm":
            forks.append(message)
        else:
            forged = forged or ("" if number == len(messages) else f"line {number} is out of order")
            messages.append(message)
    return messages + forks, forged or _contradiction(messages, tail)


def _read_line(line: bytes, *, nonce: str) -> tuple[int, dict[str, Any] | None]:
    """Return the number of a line and its message; None when it is not well-formed."""
    first, _, rest = line.partition(b" ")
    number, _, text = rest.partition(b" ")
    if first != nonce.encode() or not re.fullmatch(rb"fork|[0-9]{1,9}", number):
        return 0, None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return 0, None
    if not isinstance(message, dict) or not _is_well_formed(message):
        return 0, None
    return FORK if number == b"fork" else int(number), message


def _contradiction(messages: list[dict[str, Any]], tail: bytes) -> str:
    """Say what the recorder would not have said in this order; empty when all is well."""
    kinds = [message["kind"] for message in messages]
    once = [kind for kind in kinds if kind in {"start", "plugins", "collected", "end"}]
    once += [message["id"] for message in messages if message["kind"] == "test"]
    twice = [name for name, number in Counter(once).items() if number > 1]
    if twice:
        return f"reported twice: {twice[0]}"
    if "end" in kinds and (kinds[-1] != "end" or tail):
        return "something follows the end"
    return ""


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


def _is_mark(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_MARKS


def _is_stretch(value: object) -> bool:
    if not isinstance(value, list) or list(map(type, value)) != [str, str, int, list]:
        return False
    kind, qualname, _, lines = value
    is_paired = len(lines) % 2 == 0 and all(isinstance(line, int) for line in lines)
    return kind in get_args(StretchKind) and _is_text(qualname) and is_paired


def _is_bits(value: object) -> bool:
    return isinstance(value, str) and BITS.fullmatch(value) is not None


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


# What each kind of message holds.
FIELDS: dict[str, dict[str, Check]] = {
    "start": {"runner": _is_text},
    "plugins": {"names": _list_of(_is_text)},
    "alarm": {"event": _is_text, "place": _is_text},
    "collected": {"ids": _list_of(_is_text)},
    "collect_error": {"path": _is_text, "exception": _is_text, "message": _is_text},
    "test": {
        "id": _is_text,
        "outcome": _is_outcome,
        "duration": _is_duration,
        "exception": _is_text,
        "message": _is_text,
        "half_skipped": _is_flag,
    },
    "marked": {"path": _is_text, "first": _is_mark, "stretches": _list_of(_is_stretch)},
    "reached": {"id": _is_text, "marks": _is_bits},
    "early": {"at_import": _is_bits, "at_collection": _is_bits},
    "end": {"status": _is_number},
}
