"""What a shell command of an agent may do, and what is left of it afterwards: on each back end."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.agent.loop import Done, ScriptedPolicy, run_agent
from pipeline.agent.shell import MAX_OUTPUT_BYTES, SHOWN_CHARS
from pipeline.agent.tools import Answer, Call, Workbench
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.docker.sandbox import open_docker
from pipeline.sandbox.protocol import Mount, Sandbox
from pipeline.task.suite import Bench
from tests.pipeline.conftest import LIMITS, MakeTree
from tests.pipeline.sandbox.conftest import reason_against, unavailable

FILES = {"pkg/core.py": "def one():\n    return 1\n", "notes.txt": "one\n"}

Run = Callable[..., Answer]


@pytest.fixture(scope="module", params=["bubblewrap", "docker"])
def backend(request: pytest.FixtureRequest):
    if why := reason_against(request.param):
        unavailable(why)
    opened = open_docker() if request.param == "docker" else open_sandbox(request.param)
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    (folder / "found.txt").write_text("on the shelf\n")
    return folder


@pytest.fixture(scope="module")
def workbench(
    backend: Sandbox,
    bench: Bench,
    shelf: Path,
    make_tree: MakeTree,
    tmp_path_factory: pytest.TempPathFactory,
) -> Workbench:
    tree, bytecode = make_tree(FILES), tmp_path_factory.mktemp("bytecode")
    for folder in (tree, bytecode, shelf):
        backend.adopt(folder)
    return Workbench(
        tree,
        bench=bench,
        bytecode=bytecode,
        sandbox=backend,
        limits=LIMITS,
        more=(Mount(source=shelf, target="/srv/shelf"),),
    )


@pytest.fixture(scope="module")
def run(workbench: Workbench) -> Run:
    def use(command: object, **arguments: object) -> Answer:
        arguments["command"] = command
        return workbench.use(Call(thought="", tool="run_command", arguments=arguments))

    return use


def test_a_command_prints_and_its_status_stands_in_the_last_line(run: Run):
    answer = run("cat notes.txt; echo two >&2; printf three")
    assert answer == Answer(ok=True, output="one\ntwo\nthree\nexit status 0")
    assert run("exit 3") == Answer(ok=False, output="exit status 3")
    assert run("kill -9 $$").output == "exit status -9"


def test_it_is_a_shell_in_the_work_tree_with_the_python_of_the_environment(run: Run):
    assert run("pwd; ls | sort | head -1").output == "/work\nnotes.txt\nexit status 0"
    assert run("python -c 'import pytest, pkg.core as it; print(it.one())'").output[:2] == "1\n"


def test_what_it_writes_into_the_tree_stays_and_elsewhere_does_not(run: Run, workbench: Workbench):
    assert run("echo new > pkg/new.txt && rm -f gone.txt && echo x > /tmp/x && test -e /tmp/x").ok
    assert (workbench.tree / "pkg/new.txt").read_text() == "new\n"
    assert run("cat pkg/new.txt; cat /tmp/x").output.startswith("new\ncat: ")
    assert not run("echo x > /usr/x").ok
    assert not run("echo x > /srv/shelf/x").ok


def test_nothing_that_it_starts_outlives_it(run: Run, workbench: Workbench):
    late = "(sleep 1; echo late > late.txt) >/dev/null 2>&1 &"
    assert run(f"{late} setsid sh -c 'sleep 1; echo late > later.txt' >/dev/null 2>&1 &").ok
    time.sleep(1.5)
    assert run("ls").ok
    assert sorted(it.name for it in workbench.tree.iterdir() if "late" in it.name) == []


def test_a_command_that_does_not_end_is_ended(run: Run):
    answer = run("echo begun; sleep 60", timeout_s=1)
    assert answer == Answer(ok=False, output="begun\nthe command went over its limit of wall")


def test_a_long_output_is_cut_in_the_middle_and_an_endless_one_ended(run: Run):
    output = run("echo begin; seq 1 20000; echo end").output
    assert output.startswith("begin\n1\n2\n")
    assert output.endswith("\n20000\nend\nexit status 0")
    assert "more characters" in output
    assert len(output) < 2 * SHOWN_CHARS + 100
    endless = run(f"head -c {2 * MAX_OUTPUT_BYTES} /dev/zero")
    assert not endless.ok
    assert endless.output.endswith("\nthe command went over its limit of output")


def test_bytes_that_are_no_text_are_shown_as_such(run: Run):
    assert run(r"printf '\377a\000'").output == "�a\0\nexit status 0"


def test_it_reaches_no_network(run: Run):
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 2)"
    answer = run(f'python -c "{code}"')
    assert not answer.ok
    assert "unreachable" in answer.output
    assert run("cat /proc/net/dev | grep -c :").output.startswith("1\n")


def test_it_finds_what_is_mounted_besides(run: Run, workbench: Workbench):
    assert run("cat /srv/shelf/found.txt").output.startswith("on the shelf\n")
    read = Call(thought="", tool="read_file", arguments={"path": "/srv/shelf/found.txt"})
    assert workbench.use(read).output == "on the shelf\n"


WRONG: dict[str, dict[str, object]] = {
    "`command` is ''": {"command": ""},
    "`command` is ['ls']": {"command": ["ls"]},
    "`command` is 'a\\x00b'": {"command": "a\0b"},
    "`timeout_s` is 0": {"command": "ls", "timeout_s": 0},
    "`timeout_s` is '1'": {"command": "ls", "timeout_s": "1"},
    "`timeout_s` is True": {"command": "ls", "timeout_s": True},
    "`timeout_s` is 1000000.0": {"command": "ls", "timeout_s": 1e6},
    "run_command takes `command`, `timeout_s`, not ['shell']": {"command": "ls", "shell": "bash"},
}


@pytest.mark.parametrize(("said", "arguments"), WRONG.items(), ids=WRONG)
def test_a_wrong_call_says_what_is_wrong(said: str, arguments: dict[str, object], run: Run):
    answer = run(**arguments)
    assert not answer.ok
    assert answer.output.startswith(said)


def test_a_policy_is_shown_no_more_than_the_transcript_keeps(workbench: Workbench):
    def script():
        long = Call(thought="", tool="run_command", arguments={"command": "seq 1 1000"})
        shown.append((yield long).output)
        return Done(reason="", detail="")

    shown: list[str] = []
    _, turns = run_agent(ScriptedPolicy(script()), workbench, max_turns=3, max_shown_chars=100)
    assert [turn.output for turn in turns] == shown
    assert shown[0].startswith("1\n2\n")
    assert shown[0].endswith("more characters")
