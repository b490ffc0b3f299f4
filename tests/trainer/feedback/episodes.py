"""Episodes written by hand: what the policy said, what it called, what came back."""

import json
import posixpath
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.agent.schemas import Tool
from pipeline.agent.written import CallFormat, read_calls
from pipeline.task.patch import make_patch
from trainer.records import Episode, Reply, Segment, ToolCall, ToolResult

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
    # The text holds the calls already.
    is_whole: bool = False


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


def says(text: str, *pairs: Any, **fields: Any) -> Said:
    calls = tuple(made for made, _ in pairs)
    results = tuple(result for _, result in pairs if result is not None)
    return Said(text=text, calls=calls, results=results, **fields)


def episode(*said: Said, **fields: Any) -> Episode:
    """One letter a token; a message that calls nothing at the end finishes it.

    The final diff holds what its file tools wrote, unless it is given.
    """
    parts: list[list[Said]] = [[]]
    for it in said:
        parts[-1].append(it)
        if it.is_summary:
            parts.append([])
    is_finished = bool(said) and not said[-1].calls
    if "patch" not in fields:
        fields["patch"] = work(said)
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


def written(text: str, *results: str | ToolResult, form: CallFormat) -> Said:
    """What a policy wrote, read as the trainer reads it; a malformed call is refused."""
    calls = tuple(
        ToolCall(name=it.name, arguments=it.arguments, raw=it.raw, error=it.error, start=0, end=0)
        for it in read_calls(text, form=form)
    )
    given = [it if isinstance(it, ToolResult) else ToolResult(ok=True, text=it) for it in results]
    given += [
        ToolResult(ok=False, text=f"malformed call: {it.error}") for it in calls[len(given) :]
    ]
    return Said(text=text, calls=calls, results=tuple(given), is_whole=True)


def work(said: tuple[Said, ...]) -> str:
    """The diff of what the calls that went well wrote, a file that is deleted left out."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for made, result in (pair for it in said for pair in zip(it.calls, it.results, strict=False)):
        arguments: dict[str, Any] = made.arguments or {}
        if result.ok and made.name == "delete_files":
            for path in arguments["paths"]:
                after.pop(path, None)
        elif result.ok and made.name in {"write_file", "edit_file"}:
            path = posixpath.normpath(arguments["path"])
            new = arguments.get("new", arguments.get("content"))
            before[path] = before.get(path, "") + str(arguments.get("old", "")) + "\n"
            after[path] = after.get(path, "") + str(new) + "\n"
    return make_patch(
        {path: before[path].encode() for path in after},
        {path: text.encode() for path, text in after.items()},
    )


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
        place += len(made.raw)
        text += "" if said.is_whole else f"<tool_call>{made.raw}</tool_call>"
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
