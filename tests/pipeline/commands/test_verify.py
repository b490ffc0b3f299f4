import dataclasses
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.sandbox.scratch import own_scratch
from pipeline.task.manifest import read_manifest, write_manifest
from pipeline.task.record import Task
from pipeline.task.shards import read_tasks, write_shards
from tests.pipeline.commands.conftest import Regrow, wait_until_it_listens


@pytest.fixture
def copy(tiny_run: Path, tmp_path: Path) -> Path:
    """The shards and snapshots of a run with two of its tasks, without its done-records."""
    for name in ("rejects", "snapshots", "transcripts"):
        shutil.copytree(tiny_run / name, tmp_path / "copy" / name)
    write_tasks(tmp_path / "copy", list(read_tasks(tiny_run))[:2], like=tiny_run)
    return tmp_path / "copy"


def write_tasks(run: Path, tasks: list[Task], *, like: Path) -> None:
    """Give a run other tasks."""
    manifest = read_manifest(like)
    others = [file for file in manifest.files if not file.path.startswith("tasks/")]
    shards = write_shards(run, "tasks", tasks)
    write_manifest(run, [*others, *shards], config=manifest.config)


def test_shards_and_snapshots_are_enough_twice_in_a_row(copy: Path, regrow: Regrow):
    for _ in range(2):
        done = regrow("verify", copy, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        right = answer.pop("right")
        assert answer == {"num_tasks": 2, "gold_solves": 1.0, "empty_fails": 1.0, "wrong": []}
        assert set(right) >= {"gold", "empty", "stub"}
        assert set(right.values()) == {1.0}


def test_a_gold_patch_that_does_not_solve_fails_the_command(copy: Path, regrow: Regrow):
    first, *rest = read_tasks(copy)
    broken = dataclasses.replace(first, deletion=dataclasses.replace(first.deletion, gold_patch=""))
    write_tasks(copy, [broken, *rest], like=copy)
    done = regrow("verify", copy)
    assert done.returncode == 1
    assert f"WRONG {first.id} gold: " in done.stdout
    assert done.stdout.count("WRONG") == 1


def test_its_trees_are_removed_and_those_of_killed_ones_but_not_those_of_one_at_work(
    copy: Path, regrow: Regrow, cache: Path
):
    scratch = cache / "scratch"
    # What a killed one leaves: its folder, and a lock that nobody holds.
    (scratch / "own-killed" / "tree").mkdir(parents=True)
    (scratch / "own-killed.lock").touch()
    with own_scratch(scratch) as at_work:
        assert regrow("verify", copy).returncode == 0
        left = sorted(path.name for path in scratch.iterdir())
        assert left == [at_work.name, f"{at_work.name}.lock"]


def test_an_interrupt_ends_it(copy: Path, environ: dict[str, str]):
    command = [sys.executable, "-m", "pipeline", "verify", str(copy)]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        wait_until_it_listens(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in {0, 130}


def test_a_shard_that_was_changed_is_refused(copy: Path, regrow: Regrow):
    shard = next((copy / "tasks").iterdir())
    shard.write_bytes(shard.read_bytes() + b"x")
    done = regrow("verify", copy)
    assert done.returncode == 2
    assert "expected" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_snapshot_that_was_changed_is_never_graded(copy: Path, regrow: Regrow):
    snapshot = next((copy / "snapshots").iterdir())
    snapshot.write_bytes(snapshot.read_bytes()[:-7])
    done = regrow("verify", copy)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr
