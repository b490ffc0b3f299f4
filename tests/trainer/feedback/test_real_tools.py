"""The detectors against what the kernel's tools really say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.agent.shell import describe, read_command
from pipeline.agent.tools import FILE_TOOLS, INSIDE, summarise_run
from pipeline.sandbox.protocol import Finished
from pipeline.task.record import TestOutcome
from pipeline.task.run import SuiteRun
from tests.trainer.feedback.checks import found, kinds
from tests.trainer.feedback.episodes import TOOLS, call, episode, says
from trainer.feedback.acts import LOOKING, RUNNING, WRITING, Act
from trainer.feedback.runs import runs_in
from trainer.records import ToolCall, ToolResult


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "core.py").write_text("x = 1\nx = 1\n")
    return tmp_path


def use(tree: Path, name: str, **arguments: Any) -> Any:
    """Call a tool as the sandbox does, and give the call with the tool's own answer."""
    inside, outside = os.pipe()
    subprocess.run(
        [sys.executable, "-I", "-S", str(INSIDE / "file_tools.py")],
        input=json.dumps({"tool": name, "arguments": arguments}).encode(),
        cwd=tree,
        env={"REGROW_RESULTS_FD": str(outside)},
        pass_fds=[outside],
        check=False,
    )
    os.close(outside)
    with os.fdopen(inside) as file:
        answer = json.load(file)
    return call(name, answer["output"], ok=answer["ok"], **arguments)


def act(pair: Any) -> Act:
    made, result = pair
    return Act(turn=0, call=made, result=result)


def command_act(text: str, finished: Finished) -> Act:
    is_good = finished.limit is None and finished.exit_code == 0
    result = ToolResult(ok=is_good, text=describe(finished))
    arguments = {"command": text}
    made = ToolCall(name="run_command", arguments=arguments, raw="", error="", start=0, end=0)
    return Act(turn=0, call=made, result=result)


def finished(output: str, *, exit_code: int = 0, limit: Any = None) -> Finished:
    return Finished(
        exit_code=exit_code, limit=limit, output=output.encode(), results=b"", cpu_s=0, wall_s=0
    )


def run(*outcomes: tuple[str, str]) -> SuiteRun:
    made = tuple(TestOutcome(id=it, outcome=outcome, duration_s=0) for it, outcome in outcomes)
    return SuiteRun(
        outcomes=made,
        collected=tuple(it for it, _ in outcomes),
        collect_errors=(),
        messages={it: f"AssertionError: {it}" for it, _ in outcomes},
        trace=None,
        ended=True,
        finished=finished(""),
    )


def test_the_kernels_tools_are_the_ones_that_are_known_here() -> None:
    assert {*FILE_TOOLS} == LOOKING | WRITING
    assert {it.name for it in TOOLS} == LOOKING | WRITING | RUNNING


def test_a_real_missing_file_is_found(tree: Path) -> None:
    listing = use(tree, "list_files")
    one = episode(says("", listing), says("", use(tree, "read_file", path="src/core.py")))
    assert kinds(one) == ["missing_file"]
    assert found(one, "missing_file").facts["paths"] == ["pkg/core.py"]


def test_a_real_edit_that_does_not_match_is_found(tree: Path) -> None:
    for old, places in (("y", 0), ("x = 1", 2)):
        edits = [{"path": "pkg/core.py", "old": old, "new": "z"}]
        for pair in (
            use(tree, "edit_file", path="pkg/core.py", old=old, new="z"),
            use(tree, "edit_files", edits=edits),
        ):
            one = episode(says("", pair))
            assert kinds(one) == ["edit_without_match"]
            assert found(one, "edit_without_match").facts["places"] == places


def test_a_real_call_with_wrong_arguments_was_not_carried_out(tree: Path) -> None:
    for pair in (
        use(tree, "read_file", file="pkg/core.py"),
        use(tree, "edit_file", path="pkg/core.py"),
        use(tree, "edit_files", edits=[{"path": "pkg/core.py"}]),
    ):
        assert act(pair).status == "refused"
    assert kinds(episode(says("", use(tree, "read_file", file="a")))) == ["schema_invalid"]


def test_real_calls_that_go_well_have_no_findings(tree: Path) -> None:
    for pair in (
        use(tree, "list_files", path="."),
        use(tree, "search", text="x", path="pkg"),
        use(tree, "read_file", path="pkg/core.py", first_line=1, num_lines=1),
        use(tree, "write_file", path="new/a.py", content="y = 2\n"),
        use(tree, "edit_file", path="new/a.py", old="y = 2", new="y = 3"),
        use(tree, "delete_files", paths=["new/a.py"]),
    ):
        assert act(pair).status == "done"
        assert kinds(episode(says("", pair))) == []


def test_a_real_command_that_ends_badly_or_late_has_failed_and_is_no_fault() -> None:
    assert command_act("ls", finished("a\n")).status == "done"
    assert command_act("ls b", finished("no b", exit_code=2)).status == "failed"
    assert command_act("sleep 99", finished("", limit="wall")).status == "failed"


def test_a_real_refusal_of_a_command_is_read() -> None:
    for arguments in ({"cmd": "ls"}, {"command": ""}, {"command": "ls", "timeout_s": -1}):
        text = read_command(arguments)
        assert isinstance(text, str)
        assert act(call("run_command", text, ok=False, **arguments)).status == "refused"


def test_a_real_summary_of_a_run_is_read() -> None:
    bad = run(("t.py::a", "failed"), ("t.py::b", "error"), ("t.py::c", "xfailed"))
    (read,) = runs_in((act(call("run_tests", summarise_run(bad))),))
    assert (read.num_failed, read.failing) == (2, {"t.py::a", "t.py::b"})
    good = run(("t.py::a", "passed"), ("t.py::failed", "xfailed"))
    (read,) = runs_in((act(call("run_tests", summarise_run(good))),))
    assert (read.num_failed, read.failing) == (0, frozenset())


def test_a_real_run_of_pytest_in_a_shell_is_read(tree: Path) -> None:
    (tree / "test_it.py").write_text("def test_a():\n    assert 0\n\ndef test_b(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    shown = command_act("pytest -q", finished(done.stdout, exit_code=done.returncode))
    (read,) = runs_in((shown,))
    assert (read.num_failed, read.failing) == (1, {"test_it.py::test_a"})
