import json
import math
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.trainer.toy import toy_config
from trainer.run import run as run_config
from trainer.trackers import METRICS, TrackersConfig, open_trackers, read_metrics

MISSING = r"^trackers\.names wandb: not installed, expected `pip install wandb`$"


def run(folder: Path, steps: range, *, config: TrackersConfig | None = None) -> None:
    trackers = open_trackers(config or TrackersConfig(), folder=folder, next_step=steps.start)
    for step in steps:
        for tracker in trackers:
            tracker.log(step, {"reward": step / 2, "kl": 0.25})
    for tracker in trackers:
        tracker.close()


def test_each_step_has_a_line(tmp_path: Path) -> None:
    run(tmp_path, range(3))
    assert read_metrics(tmp_path)[2] == {"step": 2, "reward": 1.0, "kl": 0.25}


def test_a_run_that_goes_on_has_each_step_once(tmp_path: Path) -> None:
    run(tmp_path, range(5))
    run(tmp_path, range(3, 8))
    assert [it["step"] for it in read_metrics(tmp_path)] == list(range(8))


def test_a_line_that_was_cut_short_is_written_anew(tmp_path: Path) -> None:
    run(tmp_path, range(2))
    with (tmp_path / METRICS).open("a") as file:
        file.write('{"step": 2')
    assert [it["step"] for it in read_metrics(tmp_path)] == [0, 1]
    run(tmp_path, range(2, 3))
    assert [it["step"] for it in read_metrics(tmp_path)] == [0, 1, 2]


def test_a_number_that_is_none_is_null_and_the_line_stays_json(tmp_path: Path) -> None:
    (tracker,) = open_trackers(TrackersConfig(), folder=tmp_path, next_step=0)
    tracker.log(0, {"loss": math.nan, "norm": math.inf})
    tracker.close()
    assert json.loads((tmp_path / METRICS).read_text()) == {"step": 0, "loss": None, "norm": None}


def test_tensorboard_gets_each_step_once_when_a_run_goes_on_before_its_last(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps in (range(4), range(2, 3)):
        run(tmp_path, steps, config=TrackersConfig(names=("tensorboard",)))
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [(it.step, it.value) for it in found.Scalars("reward")] == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_trackio_keeps_the_numbers_in_the_folder_of_the_run(tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    code = (
        "from pathlib import Path; from trainer.trackers import *\n"
        f"config, folder = TrackersConfig(names=('trackio',)), Path({str(tmp_path)!r})\n"
        "trackers = open_trackers(config, folder=folder, next_step=0)\n"
        "[it.log(0, {'reward': 0.5}) for it in trackers], [it.close() for it in trackers]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    with closing(sqlite3.connect(tmp_path / "trackio" / "regrow.db")) as kept:
        assert "0.5" in str(kept.execute("SELECT * FROM metrics").fetchall())


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_a_tracker_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=MISSING):
        run(tmp_path, range(1), config=TrackersConfig(names=("wandb",)))


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_a_tracker_that_is_not_installed_stops_a_run_before_anything_is_loaded(
    tmp_path: Path,
) -> None:
    config = toy_config(trackers={"names": ("wandb",)}, tasks=str(tmp_path / "no shards"))
    with pytest.raises(ValueError, match=MISSING):
        run_config(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()
