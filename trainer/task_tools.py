"""Describe the tools of a workbench to a policy; the workbench is the judge of wrong calls."""

from trainer.records import Tool

_TEXT: dict[str, object] = {"type": "string"}
_PATH: dict[str, object] = {"type": "string", "description": "Below the root of the repository."}
_NUMBER: dict[str, object] = {"type": "integer", "minimum": 1}


def _tool(name: str, description: str, *, optional: tuple[str, ...] = (), **keys: object) -> Tool:
    required = [key for key in keys if key not in optional]
    schema = {
        "type": "object",
        "properties": keys,
        "required": required,
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, schema=schema)


def _list_of(items: dict[str, object]) -> dict[str, object]:
    return {"type": "array", "items": items}


_EDIT = _tool("edit", "", path=_PATH, old=_TEXT, new=_TEXT).schema

# In the order in which a policy reads of them.
TASK_TOOLS = (
    _tool(
        "list_files",
        "List the files of a folder and the folders in it; by default of the repository.",
        optional=("path",),
        path=_PATH,
    ),
    _tool(
        "search",
        "Find a fixed text, no pattern, in the files of a folder; gives `path:line: text`.",
        optional=("path",),
        text=_TEXT,
        path=_PATH,
    ),
    _tool(
        "read_file",
        "Read a file, or some lines of it.",
        optional=("first_line", "num_lines"),
        path=_PATH,
        first_line=_NUMBER,
        num_lines=_NUMBER,
    ),
    _tool(
        "edit_file",
        "Replace `old`, which must stand exactly once in the file, by `new`.",
        path=_PATH,
        old=_TEXT,
        new=_TEXT,
    ),
    _tool(
        "edit_files",
        "Make several edits in order, in one file or many: all of them or none.",
        edits=_list_of(_EDIT),
    ),
    _tool(
        "write_file",
        "Write a whole file, new or not, with its folders.",
        path=_PATH,
        content=_TEXT,
    ),
    _tool("delete_files", "Delete files.", paths=_list_of(_PATH)),
    _tool(
        "import_modules",
        "Import modules by name; gives those that fail, and how.",
        modules=_list_of(_TEXT),
    ),
    _tool(
        "run_tests",
        "Run the tests with these ids, or all of them; or say which there are.",
        optional=("ids", "collect_only"),
        ids=_list_of(_TEXT),
        collect_only={"type": "boolean"},
    ),
    _tool(
        "run_command",
        "Run a text with `/bin/sh` at the root of the repository; what it starts ends with it.",
        optional=("timeout_s",),
        command=_TEXT,
        timeout_s={"type": "number", "description": "At most 600, by default 60."},
    ),
)
