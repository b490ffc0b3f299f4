"""Read what a model answered: its calls, in the server's form or in plain text, and its words."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pipeline.agent.chat.budget import Usage
from pipeline.agent.written import Written, read_calls

# Some models write a call as a block of JSON; one without a name of a tool is none.
_FENCED = re.compile(r"```(?:json|tool_call)?\s*\n(?P<body>\{.*?\})\s*\n```", re.DOTALL)
_MARKED = re.compile(r"<tool_call>.*?(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
# A token of English or code, about; where a server does not count.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One call that a model asked for.

    Example: `Wanted(id="call_1", tool="read_file", arguments={"path": "a.py"}, error="")`.
    """

    # As the server names it; empty for one in the text.
    id: str
    tool: str
    # None when they cannot be read.
    arguments: dict[str, object] | None
    # Why it cannot be carried out; empty for a good one.
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One message of a model."""

    # Without calls that stood in it.
    text: str
    calls: tuple[Wanted, ...]
    # As it goes back to the server with the next request.
    message: Mapping[str, object]
    usage: Usage


def read_reply(
    answer: Mapping[str, object], *, tools: Collection[str], num_prompt_chars: int
) -> Reply:
    """Return what a chat completion says.

    Args:
        answer: as OpenAI-compatible servers send it.
        tools: names that make a block of JSON a call.
        num_prompt_chars: of the request; tokens are guessed by it where the server counts none.

    Raises:
        ValueError: it holds no message.
    """
    match answer:
        case {"choices": [{"message": {**message}}, *_]}:
            pass
        case _:
            raise ValueError(f"an answer without a message: {str(answer)[:200]!r}")
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    native = message.get("tool_calls")
    calls = tuple(_native(native)) if isinstance(native, list) else ()
    sent: dict[str, object] = {"role": "assistant", "content": text}
    if calls:
        sent["tool_calls"] = [_sent(it) for it in calls]
    else:
        calls, shown = _written(text, tools)
        text = shown
    return Reply(
        text=text.strip(),
        calls=calls,
        message=sent,
        usage=_usage(answer, num_prompt_chars, len(json.dumps(message))),
    )


def _native(given: list[object]) -> Iterator[Wanted]:
    for number, it in enumerate(given):
        match it:
            case {"function": {"name": str(name), **function}, **rest} if name:
                arguments, error = _arguments(function.get("arguments"))
                yield Wanted(
                    id=str(rest.get("id") or f"call_{number}"),
                    tool=name,
                    arguments=arguments,
                    error=error,
                )
            case _:
                yield Wanted(id=f"call_{number}", tool="", arguments=None, error="it has no name")


def _arguments(given: object) -> tuple[dict[str, object] | None, str]:
    """Return arguments, which servers send as a text with JSON in it."""
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given or "{}")
            # Halves of a surrogate pair are read, but are no text.
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            return None, f"arguments are no JSON: {error}"
    if not isinstance(value, dict):
        return None, f"arguments: expected a JSON object, not {type(value).__name__}"
    return value, ""


def _sent(wanted: Wanted) -> dict[str, object]:
    arguments = json.dumps(wanted.arguments or {})
    function = {"name": wanted.tool or "unknown", "arguments": arguments}
    return {"id": wanted.id, "type": "function", "function": function}


def _written(text: str, tools: Collection[str]) -> tuple[tuple[Wanted, ...], str]:
    """Return the calls that stand in a text, and the text without them."""
    if "<tool_call>" in text:
        calls = tuple(_wanted(it) for it in read_calls(text, form="hermes"))
        return calls, _MARKED.sub("", text)
    fenced = [
        it
        for match in _FENCED.finditer(text)
        for it in read_calls(f"<tool_call>{match['body']}</tool_call>", form="hermes")
        if it.name in tools
    ]
    return tuple(map(_wanted, fenced)), _FENCED.sub("", text) if fenced else text


def _wanted(it: Written) -> Wanted:
    return Wanted(id="", tool=it.name, arguments=it.arguments, error=it.error)


def _usage(answer: Mapping[str, object], num_prompt_chars: int, num_written_chars: int) -> Usage:
    match answer.get("usage"):
        case {"prompt_tokens": int(given), "completion_tokens": int(written)} if (
            min(given, written) >= 0
        ):
            return Usage(num_prompt_tokens=given, num_completion_tokens=written)
    return Usage(
        num_prompt_tokens=num_prompt_chars // CHARS_PER_TOKEN,
        num_completion_tokens=num_written_chars // CHARS_PER_TOKEN,
    )
