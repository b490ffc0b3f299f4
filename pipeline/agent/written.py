"""Read the calls of tools out of what a policy wrote; nothing that it writes is an exception."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# How a model marks a call: `hermes` as Qwen does, with the name in the JSON; `kimi` as Kimi K2
# does, with the name in the id.
CallFormat = Literal["hermes", "kimi"]

_HERMES = re.compile(r"<tool_call>(?P<body>.*?)(?P<end></tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_KIMI = re.compile(
    r"<\|tool_call_begin\|>(?P<body>.*?)"
    r"(?P<end><\|tool_call_end\|>|(?=<\|tool_call_begin\|>)|\Z)",
    re.DOTALL,
)
_KIMI_ARGUMENTS = "<|tool_call_argument_begin|>"
_KIMI_ID = re.compile(r"(?:functions\.)?(?P<name>[^:\s]+)(?::\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A call as it stands in a text.

    Example: `Written(name="search", arguments={"text": "a"}, raw="…", error="", first=12, …)`.
    """

    # As in `ToolCall`.
    name: str
    arguments: dict[str, object] | None
    # What its result is told by; empty where the format has none.
    id: str
    raw: str
    error: str
    # Characters of the text, marks included: the first, one past the last.
    first: int
    last: int


def read_calls(text: str, *, form: CallFormat, start: int = 0) -> Iterator[Written]:
    """Yield every call in a text from a character on; one that cannot be carried out says why."""
    pattern, read = (_HERMES, _read_hermes) if form == "hermes" else (_KIMI, _read_kimi)
    for match in pattern.finditer(text, start):
        name, arguments, error = read(match["body"])
        if not match["end"]:
            # What was cut off may look whole.
            arguments, error = None, "the call has no end"
        yield Written(
            name=name,
            arguments=arguments,
            id=_kimi_id(match["body"]) if form == "kimi" else "",
            raw=match["body"],
            error=error,
            first=match.start(),
            last=match.end(),
        )


_Read = tuple[str, dict[str, object] | None, str]


def _read_hermes(body: str) -> _Read:
    value, error = _json(body)
    if error:
        return "", None, error
    match value:
        case {"name": str(name), **rest} if name:
            arguments, error = _arguments(rest.get("arguments", {}))
            return name, arguments, error
        case {"name": _}:
            return "", None, "the name is no text"
    return "", None, 'expected a JSON object with "name" and "arguments"'


def _read_kimi(body: str) -> _Read:
    marked, mark, arguments = body.partition(_KIMI_ARGUMENTS)
    found = _KIMI_ID.fullmatch(marked.strip())
    if found is None or not mark:
        return "", None, "expected functions.NAME:NUMBER, then the arguments"
    given, error = _arguments(arguments)
    return found["name"], given, error


def _kimi_id(body: str) -> str:
    marked = body.partition(_KIMI_ARGUMENTS)[0].strip()
    return marked if _KIMI_ID.fullmatch(marked) else ""


def _arguments(given: object) -> tuple[dict[str, object] | None, str]:
    """Return the arguments, which some models write as a text with JSON in it."""
    if isinstance(given, str):
        given, error = _json(given)
        if error:
            return None, f"arguments: {error}"
    if not isinstance(given, dict):
        return None, f"arguments: expected a JSON object, not {type(given).__name__}"
    return given, ""


def _json(text: str) -> tuple[object, str]:
    """Read JSON, and no more than that: what comes out can be written again, in UTF-8."""
    try:
        value = json.loads(text)
        # `NaN`, `1e999` and halves of a surrogate pair are read, but are no JSON and no text.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        return None, f"no JSON: {error}"
    except RecursionError:
        return None, "no JSON: nested too deeply"
    return value, ""
