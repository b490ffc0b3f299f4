"""The schemas of the tools, held against the kernel that carries them out."""

import ast
import re
from collections.abc import Iterator

import pytest

from pipeline.agent.attempt import solver_bench
from pipeline.agent.schemas import SOLVING, TOOL_NAMES, Tool, ToolName, describe_tools
from pipeline.agent.tools import INSIDE, Answer, Call, Workbench
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from trainer.feedback.schema import breaches

TOOLS = {tool.name: tool for tool in describe_tools(TOOL_NAMES)}
# In this order: each with all that it takes.
CALLS: dict[str, dict[str, object]] = {
    "list_files": {"path": "pantry"},
    "search": {"text": "def slug", "path": "pantry"},
    "read_file": {"path": "pantry/words.py", "first_line": 1, "num_lines": 2},
    "write_file": {"path": "more/new.py", "content": "x = 1\n"},
    "edit_file": {"path": "more/new.py", "old": "1", "new": "2"},
    "edit_files": {"edits": [{"path": "more/new.py", "old": "2", "new": "3"}]},
    "import_modules": {"modules": ["pantry.words"]},
    "run_command": {"command": "cat more/new.py", "timeout_s": 20},
    "run_tests": {"ids": ["tests/test_words.py::test_slug"], "collect_only": False},
    "delete_files": {"paths": ["more/new.py"]},
}


@pytest.fixture(scope="module")
def workbench(pantry_task: Task, pantry_desk: Desk) -> Iterator[Workbench]:
    with solver_bench(pantry_task, desk=pantry_desk) as opened:
        yield opened


def used(workbench: Workbench, tool: str, arguments: dict[str, object]) -> Answer:
    return workbench.use(Call(thought="", tool=tool, arguments=arguments))


def test_every_tool_of_the_kernel_is_described_and_no_other(workbench: Workbench):
    named = used(workbench, "fly", {}).output.partition("there are ")[2].split(", ")
    assert sorted(named) == sorted(TOOL_NAMES) == sorted(TOOLS)
    assert {*SOLVING} < {*TOOL_NAMES}


def test_calls_as_the_schemas_have_them_are_carried_out(workbench: Workbench):
    assert CALLS.keys() == TOOLS.keys()
    for name, arguments in CALLS.items():
        assert breaches(arguments, TOOLS[name]) == []
        assert properties(TOOLS[name]) == [*arguments]
        answer = used(workbench, name, arguments)
        assert answer.ok, (name, answer.output)


@pytest.mark.parametrize("name", ["run_command", "run_tests", "edit_file", "list_files"])
def test_a_key_that_no_schema_has_is_refused_by_the_kernel(workbench: Workbench, name: ToolName):
    arguments = {**CALLS[name], "colour": "red"}
    assert [it.key for it in breaches(arguments, TOOLS[name])] == [""]
    answer = used(workbench, name, arguments)
    assert not answer.ok
    assert "colour" in answer.output


def test_the_file_tools_take_what_their_schemas_say_and_need_what_these_require():
    tree = ast.parse((INSIDE / "file_tools.py").read_text())
    functions = {it.name: it.args for it in tree.body if isinstance(it, ast.FunctionDef)}
    found = {name: functions[name] for name in TOOL_NAMES if name in functions}
    assert len(found) == 7
    for name, arguments in found.items():
        names = [it.arg for it in arguments.args]
        num_required = len(names) - len(arguments.defaults)
        assert properties(TOOLS[name]) == names
        assert TOOLS[name].schema["required"] == names[:num_required]


def test_the_tools_that_run_things_take_what_their_schemas_say(workbench: Workbench):
    for name in ("run_tests", "run_command"):
        said = used(workbench, name, {"colour": "red"}).output
        taken = re.findall(r"`(\w+)`", said)
        assert said.startswith(f"{name} takes ")
        assert properties(TOOLS[name]) == taken


def properties(tool: Tool) -> list[str]:
    return [*tool.schema["properties"]]
