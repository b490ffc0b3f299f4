"""Episodes written by hand: what the policy said, what it called, what came back."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainer.records import Episode, Reply, Segment, Tool, ToolCall, ToolResult

HEADER = 4


def tool(name: str, **types: str) -> Tool:
    """A tool; arguments whose type ends in `?` may be left out."""
    properties = {key: {"type": kind.rstrip("?")} for key, kind in types.items()}
    required = [key for key, kind in types.items() if not kind.endswith("?")]
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Tool(name=name, description=f"The tool {name}.", schema=schema)


TOOLS = (
    tool("list_files", path="string?"),
    tool("search", text="string", path="string?"),
    tool("read_file", path="string", first_line="integer?", num_lines="integer?"),
    tool("edit_file", path="string", old="string", new="string"),
    tool("edit_files", edits="array"),
    tool("write_file", path="string", content="string"),
    tool("delete_files", paths="array"),
    tool("import_modules", modules="array"),
    tool("run_tests", ids="array?", collect_only="boolean?"),
    tool("run_command", command="string", timeout_s="number?"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A Reply before it has a place."""

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    stop: Any = "end"
    # Ends its Segment.
    is_summary: bool = False


def call(name: str, output: str | None = None, *, ok: bool = True, **arguments: Any) -> Any:
    """A well-formed call with its result; without one, nobody answered."""
    raw = json.dumps({"name": name, "arguments": arguments})
    made = ToolCall(name=name, arguments=arguments, raw=raw, error="", start=0, end=0)
    return made, None if output is None else ToolResult(ok=ok, text=output)


def broken(raw: str, *, name: str = "", error: str = "no JSON") -> Any:
    made = ToolCall(name=name, arguments=None, raw=raw, error=error, start=0, end=0)
    return made, ToolResult(ok=False, text=f"the call cannot be read: {error}")


def fault(name: str, text: str = "the sandbox is gone", **arguments: Any) -> Any:
    made, _ = call(name, "", **arguments)
    return made, ToolResult(ok=False, text=text, is_fault=True)


def says(text: str, *pairs: Any, stop: str = "end", is_summary: bool = False) -> Said:
    calls = tuple(made for made, _ in pairs)
    results = tuple(result for _, result in pairs if result is not None)
    return Said(text=text, calls=calls, results=results, stop=stop, is_summary=is_summary)


def episode(*said: Said, **fields: Any) -> Episode:
    """One letter a token; a message that calls nothing at the end finishes it."""
    parts: list[list[Said]] = [[]]
    for it in said:
        parts[-1].append(it)
        if it.is_summary:
            parts.append([])
    is_finished = bool(said) and not said[-1].calls
    return Episode(**{
        "id": "0-task.0",
        "group": "0-task",
        "number": 0,
        "prompt": "task",
        "tools": TOOLS,
        "segments": tuple(segment(it) for it in parts if it),
        "ending": "finished" if is_finished else "out_of_turns",
        "reward": 0.0,
        "verdict": "unsolved",
        "detail": "",
        **fields,
    })


def segment(said: list[Said]) -> Segment:
    sampled: list[bool] = []
    replies = []
    for it in said:
        replies.append(reply(it, start=len(sampled) + HEADER))
        sampled += [False] * HEADER + [True] * (replies[-1].end - replies[-1].start)
        sampled += [False] * sum(len(result.text) for result in it.results)
    return Segment(
        ids=np.arange(len(sampled), dtype=np.int64),
        sampled=np.array(sampled, dtype=np.bool_),
        logprobs=np.zeros(len(sampled), dtype=np.float32),
        replies=tuple(replies),
    )


def reply(said: Said, *, start: int = HEADER) -> Reply:
    place, calls, text = start + len(said.text), [], said.text
    for made in said.calls:
        calls.append(replace(made, start=place, end=place + len(made.raw)))
        place, text = place + len(made.raw), text + f"<tool_call>{made.raw}</tool_call>"
    return Reply(
        header=start - HEADER,
        start=start,
        end=place + 1,
        text=text,
        calls=tuple(calls),
        results=said.results,
        stop=said.stop,
        version=0,
    )
