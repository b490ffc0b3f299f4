"""One Episode for each kind of Finding that has a hint."""

from tests.trainer.feedback.episodes import TOOLS, broken, call, episode, says, tool

NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: 'core.py'"
NO_MATCH = "ValueError: `old` must stand exactly once in a.py, it stands 0 times"
LOST = call("edit_file", NO_MATCH, ok=False, path="a.py", old="retries = 1", new="retries = 2")
EDIT = says("", call("edit_file", "edited: a.py", path="a.py", old="1", new="2"))
PASSES = says("", call("run_tests", "1 collected, 1 passed"))
FAILS = says("", call("run_tests", "1 collected, 1 failed\nFAILED t.py::test: E: 1"))
SILENT = says("I changed the default.")
LISTED = says("", call("list_files", "pkg/core.py\npkg/io.py"))
READ = says("", call("read_file", "x = 1\n", path="a.py"))
NOTES = says("", call("write_file", "written: a.md", path="a.md", content="x"))
OPEN = [{"content": "step 1", "status": "pending"}]
TODO = says("", call("todo_write", "noted", todos=OPEN))

BY_KIND = {
    "unknown_tool": episode(says("", call("reed_file", "there is no tool", ok=False))),
    "malformed_arguments": episode(says("", broken('{"name": "read_file"', name="read_file"))),
    "wrong_call_format": episode(says('{"name": "read_file", "arguments": {"path": "a.py"}}')),
    "schema_invalid": episode(says("", call("read_file", "TypeError: x", ok=False, line=3))),
    "edit_without_match": episode(says("", LOST)),
    "missing_file": episode(LISTED, says("", call("read_file", NO_FILE, ok=False, path="core.py"))),
    "repeated_call": episode(READ, READ),
    "tool_error_ignored": episode(says("", LOST), SILENT),
    "false_success": episode(PASSES, EDIT, says("All tests pass.")),
    "failing_tests_ignored": episode(EDIT, FAILS, SILENT),
    "tests_never_run": episode(EDIT, SILENT),
    "unfinished_plan": episode(TODO, SILENT, tools=(*TOOLS, tool("todo_write", todos="array"))),
    "empty_message": episode(NOTES, says("")),
    "overlong_message": episode(NOTES, says("word " * 300)),
    "style_regression": episode(
        READ, says("", call("edit_file", "edited", path="a.py", old="x = 1", new="import os"))
    ),
    "loud_comment": episode(
        says("", call("edit_file", "edited", path="a.py", old="x", new="x  # Hmm, let me see"))
    ),
}
