"""Describe the tools of a workbench to a model; the workbench is the judge of wrong calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pipeline.agent.shell import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S

ToolName = Literal[
    "list_files",
    "search",
    "read_file",
    "edit_file",
    "edit_files",
    "write_file",
    "delete_files",
    "import_modules",
    "run_tests",
    "run_command",
]
TOOL_NAMES: tuple[ToolName, ...] = get_args(ToolName)
# What a solver is offered: the others do nothing that these cannot do.
SOLVING: tuple[ToolName, ...] = (
    *("list_files", "search", "read_file", "edit_file", "write_file", "delete_files"),
    *("run_tests", "run_command"),
)

_Rules = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that an environment offers.

    Example: `Tool(name="read_file", description="Read a file.", schema={"type": "object", …})`.
    """

    name: str
    description: str
    # JSON Schema of the arguments, an object.
    schema: dict[str, object]


def describe_tools(names: Sequence[ToolName]) -> tuple[Tool, ...]:
    """Return the tools with these names, in order."""
    return tuple(_TOOLS[name] for name in names)


def _tool(
    name: ToolName, description: str, *, optional: tuple[str, ...] = (), **keys: _Rules
) -> Tool:
    return Tool(name=name, description=description, schema=_object(keys, optional=optional))


def _object(keys: dict[str, _Rules], *, optional: tuple[str, ...] = ()) -> _Rules:
    return {
        "type": "object",
        "properties": keys,
        "required": [key for key in keys if key not in optional],
        "additionalProperties": False,
    }


def _text(description: str) -> _Rules:
    return {"type": "string", "description": description}


def _number(description: str, *, least: int) -> _Rules:
    return {"type": "integer", "minimum": least, "description": description}


def _list(items: _Rules) -> _Rules:
    return {"type": "array", "items": items}


_FILE = _text("Relative to the root of the repository.")
_FOLDER = _text("Relative to the root of the repository, which is the default.")
_OLD = _text("As it stands in the file, exactly once; with lines around it if need be.")
_NEW = _text("What stands there instead.")

_TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        _tool(
            "list_files",
            "List the files of a folder and of the folders in it.",
            optional=("path",),
            path=_FOLDER,
        ),
        _tool(
            "search",
            "Find a text, which is no pattern, in the files of a folder: `path:line: text`.",
            optional=("path",),
            text=_text("Case matters; within one line."),
            path=_FOLDER,
        ),
        _tool(
            "read_file",
            "Read a file, or some lines of it.",
            optional=("first_line", "num_lines"),
            path=_FILE,
            first_line=_number("From 1, the default.", least=1),
            num_lines=_number("0, the default, for all that follow.", least=0),
        ),
        _tool(
            "edit_file",
            "Replace the one place in a file where a text stands.",
            path=_FILE,
            old=_OLD,
            new=_NEW,
        ),
        _tool(
            "edit_files",
            "Replace one place each in a file or several, in order: all of them or none.",
            edits=_list(_object({"path": _FILE, "old": _OLD, "new": _NEW})),
        ),
        _tool(
            "write_file",
            "Write a whole file, new or not, and the folders that it needs.",
            path=_FILE,
            content=_text("All of the file."),
        ),
        _tool("delete_files", "Delete files.", paths=_list(_FILE)),
        _tool(
            "import_modules",
            "Import modules, and say which of them fail.",
            modules=_list(_text("Dotted name.")),
        ),
        _tool(
            "run_tests",
            "Run the tests, and say which of them fail.",
            optional=("ids", "collect_only"),
            ids=_list(_text("Of pytest: `tests/test_a.py::test_b`. By default all run.")),
            collect_only={"type": "boolean", "description": "Collect the tests and run none."},
        ),
        _tool(
            "run_command",
            "Run a text with `/bin/sh` at the root of the repository, without network.",
            optional=("timeout_s",),
            command=_text("What it starts ends with it."),
            timeout_s={
                "type": "number",
                "maximum": MAX_TIMEOUT_S,
                "description": f"Seconds; by default {DEFAULT_TIMEOUT_S:.0f}.",
            },
        ),
    )
}
