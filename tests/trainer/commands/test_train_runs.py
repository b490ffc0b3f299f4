"""Whole runs of the command on a Task in a sandbox: what they leave, and how they are stopped."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.episode_shards import read_entries
from trainer.trackers import read_metrics

SMALL = """
steps = 1
prompts = 1
group = 2
row_tokens = 512
[model]
tiny = "dense"
device = "cpu"
[rollout]
max_turns = 2
max_context_tokens = 6000
max_new_tokens = 16
"""


@pytest.fixture
def command(tmp_path: Path, pantry_run: Path) -> list[str]:
    path = tmp_path / "small.toml"
    path.write_text(f"tasks = {str(pantry_run)!r}\n{SMALL}")
    out = str(tmp_path / "out")
    return [sys.executable, "-m", "pipeline", "train", str(path), "--out", out]


@pytest.fixture
def environ(own_cache: Path) -> dict[str, str]:
    return {**os.environ, "REGROW_CACHE": str(own_cache), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def run(
    command: list[str], environ: dict[str, str], *overrides: str
) -> subprocess.CompletedProcess[str]:
    sets = [it for override in overrides for it in ("--set", override)]
    return subprocess.run(
        [*command, *sets], env=environ, capture_output=True, text=True, check=False
    )


def test_a_run_leaves_metrics_episodes_and_a_model_and_goes_on_where_it_was(
    command: list[str], environ: dict[str, str], own_cache: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(command, environ).returncode == 0
    done = run(command, environ, "steps=2")
    assert done.returncode == 0, done.stderr
    assert "step 2/2" in done.stdout
    assert "step 1/" not in done.stdout
    assert [it["step"] for it in read_metrics(out)] == [0, 1]
    files = sorted((out / "episodes").iterdir())
    assert [len(list(read_entries(path))) for path in files] == [2, 2]
    assert (out / "checkpoints" / "step-000002" / "model" / "model.safetensors").is_file()
    refused = run(command, environ, "steps=3", "seed=1")
    assert refused.returncode == 2
    assert "was begun with seed 0, not 1" in refused.stderr
    assert list((own_cache / "scratch").iterdir()) == []


def test_a_check_ends_well_where_all_holds(command: list[str], environ: dict[str, str]) -> None:
    done = subprocess.run(
        [*command, "--check"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("holds") == 9


def test_an_endpoint_that_is_down_ends_it_in_one_line_after_some_tries(
    command: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        patience = "patience = {max_tries = 2, pause_s = 0.1}"
        http = f"{{url = {url!r}, model = 'policy', weights_folder = '{tmp_path}', {patience}}}"
        done = run(command, environ, "engine.kind=http", f"engine.http={http}")
    assert done.returncode == 1
    assert url in done.stderr
    assert done.stderr.count("\n") == 1


def test_losses_that_are_no_numbers_are_skipped_counted_and_end_it_after_a_limit(
    command: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    # No float32: whatever is multiplied by it is no number.
    spoilt = ("objective.loss.weight=1e300", "max_bad_steps=2")
    done = run(command, environ, "steps=9", *spoilt)
    assert done.returncode == 1
    assert "step 1: the loss is no number, 2 steps in a row" in done.stderr
    assert done.stderr.count("error: ") == 1
    assert [it["is_skipped"] for it in read_metrics(tmp_path / "out")] == [1, 1]
    assert (tmp_path / "out" / "checkpoints" / "latest").exists()


def test_ctrl_c_ends_it_in_one_line_and_leaves_nothing(
    command: list[str], environ: dict[str, str], own_cache: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [*command, "--set", "steps=1000"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as training:
        while not (tmp_path / "out" / "checkpoints" / "latest").exists():
            assert training.poll() is None
            time.sleep(0.05)
        os.killpg(training.pid, signal.SIGINT)
        _, said = training.communicate(timeout=300)
    assert training.returncode == 130
    assert said.splitlines() == [
        "error: stopped; the same command goes on from the last checkpoint"
    ]
    left = subprocess.run(
        ["pgrep", "-s", str(training.pid)], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""
    assert list((own_cache / "scratch").iterdir()) == []
