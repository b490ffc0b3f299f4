"""Whole Episodes as agents have them, in the marks of both families of chat formats."""

import json
from typing import Any, get_args

import pytest

from pipeline.agent.written import CallFormat
from tests.trainer.feedback.checks import kinds
from tests.trainer.feedback.episodes import TOOLS, Said, episode, says, tool, written
from trainer.records import ToolResult

# A call: its tool, its arguments, what came back; a text that begins with `!` went wrong.
Call = tuple[str, dict[str, Any], str]
# A message: what is said, and what is called; a text alone calls nothing.
Message = tuple[str, list[Call]] | str

FORMS = get_args(CallFormat)
TREE = "README.md\nsetup.py\nsrc/pkg/__init__.py\nsrc/pkg/core.py\ntests/test_core.py"
CORE = "import re\n\n\ndef slug(text):\n    return re.sub(' ', '-', text)\n"
MISSING = "!FileNotFoundError: [Errno 2] No such file or directory: '{}'"
NO_MATCH = "!ValueError: `old` must stand exactly once in src/pkg/core.py, it stands 0 times"
RED = "3 collected, 1 failed, 2 passed\nFAILED tests/test_core.py::test_slug: AssertionError"
GREEN = "3 collected, 3 passed"

LIST: Call = ("list_files", {}, TREE)
READ: Call = ("read_file", {"path": "src/pkg/core.py"}, CORE)
RUN: Call = ("run_tests", {}, GREEN)
FAIL: Call = ("run_tests", {}, RED)


def edit(old: str, new: str, path: str = "src/pkg/core.py") -> Call:
    return "edit_file", {"path": path, "old": old, "new": new}, f"edited: {path}"


def write(path: str, content: str) -> Call:
    return "write_file", {"path": path, "content": content}, f"written: {path}"


def shell(command: str, output: str = "", status: int = 0) -> Call:
    text = f"{output}\nexit status {status}".lstrip("\n")
    return "run_command", {"command": command}, f"{'!' * bool(status)}{text}"


LOWER = edit("text)\n", "text.lower())\n")
DONE = "I made `slug` lower its text; the tests pass."

GOOD: dict[str, list[Message]] = {
    "reads, edits, runs, tells": [
        ("I look at what is there.", [LIST]),
        ("", [READ, ("read_file", {"path": "tests/test_core.py"}, "from pkg import core\n")]),
        ("Now the change.", [LOWER]),
        ("", [RUN]),
        DONE,
    ],
    "thinks of a call and of its doubts before it makes one": [
        ("<think>Wait, I could send <tool_call>{</tool_call>. Let me look.</think>", [READ]),
        ("<think>Hmm. All tests pass? I think so.</think>Nothing is to be changed.", [LIST]),
        "`slug` does what was asked.",
    ],
    "works in a shell, in steps that look alike": [
        ("", [shell("ls -R | head -50", TREE)]),
        ("", [shell("sed -i '0,/x/s//y/' src/pkg/core.py")]),
        ("", [shell("sed -i '0,/x/s//y/' src/pkg/core.py")]),
        ("", [shell("sed -i '0,/x/s//y/' src/pkg/core.py")]),
        ("", [shell("python -m pytest -q", "3 passed in 0.12s")]),
        "Three places are changed. All tests pass.",
    ],
    "makes failing tests pass, in rounds": [
        ("", [FAIL]),
        ("", [READ]),
        ("", [edit("' '", "'_'")]),
        ("", [FAIL]),
        ("", [edit("'_'", "r'\\s'")]),
        ("", [FAIL]),
        ("", [edit("'-'", "'_'")]),
        ("", [RUN]),
        "The tests pass now.",
    ],
    "guesses a path from the request, then looks": [
        ("", [("read_file", {"path": "pkg/core.py"}, MISSING.format("pkg/core.py"))]),
        ("", [("read_file", {"path": "lib/pkg/core.py"}, MISSING.format("lib/pkg/core.py"))]),
        ("", [LIST]),
        ("", [READ]),
        "The function is in src/pkg/core.py.",
    ],
    "tries it out in a file of its own and removes it": [
        ("", [READ]),
        ("", [LOWER]),
        ("", [RUN]),
        ("", [write("try_it.py", "# Let me see\nimport os\nfrom pkg.core import slug\n")]),
        ("", [shell("python try_it.py", "a-b")]),
        ("", [("delete_files", {"paths": ["try_it.py"]}, "deleted: try_it.py")]),
        DONE,
    ],
    "reads in parts, and again after the edit": [
        ("", [("read_file", {"path": "src/pkg/core.py", "num_lines": 2}, "import re\n\n")]),
        ("", [("read_file", {"path": "src/pkg/core.py", "first_line": 3}, "\ndef slug(text):\n")]),
        ("", [LOWER]),
        ("", [("read_file", {"path": "src/pkg/core.py", "first_line": 3}, "\ndef slug(text):\n")]),
        ("", [RUN]),
        DONE,
    ],
    "tests first, then says it in the README and in a docstring": [
        ("", [READ]),
        ("", [LOWER]),
        ("", [RUN]),
        ("", [write("README.md", "# Slugs\n\nWait, there is more.\n")]),
        ("", [edit("text):\n", 'text):\n    """Return a slug."""\n')]),
        DONE,
    ],
    "ends with an example of JSON": [
        ("", [LIST]),
        'A client sends this:\n```json\n{"name": "slug", "arguments": {"text": "A b"}}\n```',
    ],
    "tells of failures that are not its own": [
        ("", [FAIL]),
        ("", [LOWER]),
        ("", [FAIL]),
        "`slug` lowers its text. test_slug failed before and still fails: it wants a dash.",
    ],
    "calls several tools at once": [
        ("", [LIST, READ, ("search", {"text": "slug"}, "src/pkg/core.py:4: def slug(text):")]),
        ("", [LOWER, RUN, ("search", {"text": "slug"}, "src/pkg/core.py:4: def slug(text):")]),
        DONE,
    ],
    "waits in vain for the whole suite and runs a part": [
        ("", [LOWER]),
        ("", [("run_tests", {}, "!the run went over its limit of wall")]),
        ("", [("run_tests", {"ids": ["tests/test_core.py"]}, GREEN)]),
        "`slug` lowers its text. tests/test_core.py passes; the whole suite takes too long here.",
    ],
    "answers a question at length and changes nothing": [
        ("", [READ]),
        "It replaces each blank by a dash. " * 60,
    ],
    "has a tool tidy up after it": [
        ("", [READ]),
        ("", [edit("import re\n", "import os\nimport re\nimport sys\n")]),
        ("", [shell("ruff check --fix src && ruff format src", "Found 2 errors (2 fixed).")]),
        ("", [shell("python -m pytest -q 2>&1 | tail -3", "3 passed in 0.10s")]),
        "It is tidy again, and all tests pass.",
    ],
    "writes comments that wait and let": [
        ("", [READ]),
        (
            "",
            [
                edit(
                    "    return re",
                    "    # Wait for the lock; i will be 0, I/O is off.\n    return re",
                )
            ],
        ),
        ("", [RUN]),
        "The comment says why. The tests pass.",
    ],
    "shows that the tests failed before": [
        ("", [LOWER]),
        ("", [RUN]),
        ("", [shell("git stash")]),
        ("", [FAIL]),
        ("", [shell("git stash pop")]),
        "With the change all tests pass.",
    ],
    "imports first and uses it in the next edit": [
        ("", [READ]),
        ("", [edit("import re\n", "import re\nimport string\n")]),
        ("", [edit("    return re", "    string.capwords(text)\n    return re")]),
        ("", [RUN]),
        "It capitalises. All tests pass.",
    ],
    "has programs that fail and speak of errors": [
        ("", [shell("python -c 'import pkg; pkg.slug(3)'", "TypeError: expected string", 1)]),
        ("", [shell("grep -rn missing src", "", 1)]),
        ("", [LOWER]),
        ("", [shell("python -c 'import pkg; pkg.slug(3)'", "TypeError: expected string", 1)]),
        ("", [RUN]),
        "A number is still refused with a TypeError, as documented.",
    ],
    "makes a file by a program and looks for it in vain": [
        ("", [LIST]),
        ("", [shell("python setup.py build", "done")]),
        ("", [("read_file", {"path": "build/log.txt"}, MISSING.format("build/log.txt"))]),
        "The build writes no log.",
    ],
    "plans, does it, and ends with the report that it planned": [
        ("", [("todo_write", {"todos": [{"content": "Lower it", "status": "pending"}]}, "ok")]),
        ("", [LOWER]),
        ("", [RUN]),
        (
            "",
            [
                (
                    "todo_write",
                    {
                        "todos": [
                            {"content": "Lower it", "status": "completed"},
                            {"content": "Report back", "status": "in_progress"},
                        ]
                    },
                    "ok",
                )
            ],
        ),
        DONE,
    ],
    "asks for what is gone already to be removed": [
        ("", [shell("rm src/pkg/old.py")]),
        ("", [("delete_files", {"paths": ["src/pkg/old.py"]}, MISSING.format("src/pkg/old.py"))]),
        "old.py is removed.",
    ],
}

# What each is found to be, in order of the Replies.
BAD: dict[str, tuple[list[Message], list[str]]] = {
    "says that tests pass which it never ran": (
        [("", [READ]), ("", [LOWER]), "Done. All tests pass."],
        ["false_success", "tests_never_run"],
    ),
    "goes round in circles": (
        [("", [READ]), ("", [shell("ls src", "pkg")]), ("", [READ]), "It is in core.py."],
        ["repeated_call"],
    ),
    "does not read what the list says": (
        [
            ("", [LIST]),
            ("", [("read_file", {"path": "src/core.py"}, MISSING.format("src/core.py"))]),
        ],
        ["missing_file"],
    ),
    "walks past an edit that did not match": (
        [
            ("", [READ]),
            ("", [(*LOWER[:2], NO_MATCH)]),
            "`slug` lowers its text now.",
        ],
        ["edit_without_match", "tool_error_ignored"],
    ),
    "calls tools that are elsewhere": (
        [("", [("bash", {"cmd": "ls"}, "!there is no tool 'bash', there are list_files")])],
        ["unknown_tool"],
    ),
    "leaves an import behind and is silent on a failure": (
        [
            ("", [READ]),
            ("", [edit("import re\n", "import os\nimport re\n")]),
            ("", [FAIL]),
            "Done.",
        ],
        ["style_regression", "failing_tests_ignored"],
    ),
}


def said(message: Message, number: int, *, form: CallFormat) -> Said:
    if isinstance(message, str):
        return says(message)
    text, calls = message
    results = [
        ToolResult(ok=not output.startswith("!"), text=output.removeprefix("!"))
        for _, _, output in calls
    ]
    if form == "hermes":
        marked = "".join(
            f"\n<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>"
            for name, given, _ in calls
        )
    else:
        inner = "".join(
            f"<|tool_call_begin|>functions.{name}:{number + place}<|tool_call_argument_begin|>"
            f"{json.dumps(given)}<|tool_call_end|>"
            for place, (name, given, _) in enumerate(calls)
        )
        marked = f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"
    # As the chat reads it: what is but thought of is no call.
    thought, end, rest = text.rpartition("</think>")
    made = written(f"{rest}{marked}", *results, form=form)
    return says(
        thought + end + made.text, *zip(made.calls, made.results, strict=True), is_whole=True
    )


def played(messages: list[Message], *, form: CallFormat) -> Any:
    tools = (*TOOLS, tool("todo_write", todos="array"))
    return episode(*(said(it, 3 * n, form=form) for n, it in enumerate(messages)), tools=tools)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_where_an_agent(name: str, form: CallFormat) -> None:
    assert kinds(played(GOOD[name], form=form)) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BAD)
def test_it_is_found_where_an_agent(name: str, form: CallFormat) -> None:
    messages, expected = BAD[name]
    assert kinds(played(messages, form=form)) == expected
