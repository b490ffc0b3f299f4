"""A run folder as a world: what is shared, what is left behind, what is refused in one line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.desk import Folders
from pipeline.sandbox.protocol import Sandbox, SandboxUnavailableError
from pipeline.task.manifest import ShardError, write_manifest
from pipeline.task.record import Task
from pipeline.task.shards import write_shards
from trainer.desks import Desks, open_world
from trainer.records import ToolCall
from trainer.task_env import TaskConfig

CONFIG = TaskConfig()
LIST = ToolCall(name="list_files", arguments={}, raw="", error="", start=0, end=0)


# Has a thread wait for a command that takes long; says when it has begun.
WAIT = """
import signal, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from trainer.desks import open_world
from trainer.records import ToolCall
from trainer.task_env import TaskConfig

class Says(dict):
    def get(self, key, default=None):
        print("waits", flush=True)
        return super().get(key, default)

signal.signal(signal.SIGTERM, signal.default_int_handler)
run, cache = map(Path, sys.argv[1:])
call = ToolCall(name="run_command", raw="", error="", start=0, end=0,
                arguments=Says(command="sleep 500", timeout_s=600))
with open_world(run, config=TaskConfig(), seed=0, cache=cache) as (world, prompts):
    with world.open(prompts[0], draw="") as environment, ThreadPoolExecutor() as pool:
        pool.submit(environment.call, call).result()
"""


def test_the_tasks_of_a_run_can_be_tried_and_nothing_is_left_of_it(
    pantry_run: Path, pantry_task: Task, own_cache: Path
):
    before = children()
    with open_world(pantry_run, config=CONFIG, seed=0, cache=own_cache) as (world, prompts):
        assert prompts == (pantry_task.id,)
        with world.open(prompts[0], draw="") as environment:
            assert "pantry/units.py" in environment.call(LIST).text.split()
            assert environment.finish("").verdict == "unsolved"
        assert [*(own_cache / "scratch").iterdir()]
        assert children() - before
    assert [*(own_cache / "scratch").iterdir()] == []
    assert not children() - before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_a_command_runs_and_nothing_is_left(
    pantry_run: Path, own_cache: Path, number: signal.Signals
):
    command = (sys.executable, "-c", WAIT, str(pantry_run), str(own_cache))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        try:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == b"waits\n"
            waiting.send_signal(number)
            said = waiting.communicate(timeout=120)[1]
        finally:
            waiting.kill()
    assert said.splitlines()[-1] == b"KeyboardInterrupt"
    assert [*(own_cache / "scratch").iterdir()] == []


def children() -> set[str]:
    """Return the processes that this one has started and not seen end."""
    found = (it.read_text().split() for it in Path("/proc/self/task").glob("*/children"))
    return {pid for pids in found for pid in pids}


def test_tasks_of_one_snapshot_and_environment_share_a_desk(
    pantry_task: Task, folders: Folders, sandbox: Sandbox
):
    desks = Desks(folders, sandbox=sandbox)
    assert desks.open(pantry_task) is desks.open(pantry_task)
    assert desks.open(pantry_task) is not Desks(folders, sandbox=sandbox).open(pantry_task)


def refused(run: Path, cache: Path, *, config: TaskConfig = CONFIG) -> str:
    with (
        pytest.raises((ShardError, SandboxUnavailableError)) as caught,
        open_world(run, config=config, seed=0, cache=cache),
    ):
        pass
    (line,) = str(caught.value).splitlines()
    return line


def test_a_run_that_is_not_there_is_refused_in_one_line(tmp_path: Path, cache: Path):
    missing = tmp_path / "nowhere"
    expected = f"{missing}: no such folder, expected the output of `regrow generate`"
    assert refused(missing, cache) == expected
    assert "manifest.json: no such file, expected the manifest" in refused(tmp_path, cache)


def test_a_run_of_another_schema_or_without_tasks_is_refused_in_one_line(
    tmp_path: Path, cache: Path
):
    write_manifest(tmp_path, write_shards(tmp_path, "tasks", []), config={})
    assert refused(tmp_path, cache) == f"{tmp_path}: 0 tasks, expected at least one"
    manifest = tmp_path / "manifest.json"
    other = json.loads(manifest.read_text()) | {"schema_version": 1}
    manifest.write_text(json.dumps(other))
    assert "schema version 1, expected " in refused(tmp_path, cache)


def test_a_run_with_a_snapshot_that_is_gone_is_refused_in_one_line(
    pantry_run: Path, tmp_path: Path, cache: Path
):
    copy = tmp_path / "copy"
    (copy / "tasks").mkdir(parents=True)
    for name in ("manifest.json", "tasks/tasks-00000-of-00001.parquet"):
        (copy / name).write_bytes((pantry_run / name).read_bytes())
    line = refused(copy, cache)
    assert ".tar.zst: no such file, expected sha256 " in line


def test_a_machine_without_a_sandbox_is_told_so_in_one_line(
    pantry_run: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    line = refused(pantry_run, own_cache, config=TaskConfig(sandbox="docker"))
    assert "/nowhere/docker.sock" in line
    assert [*(own_cache / "scratch").iterdir()] == []
