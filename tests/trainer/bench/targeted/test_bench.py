import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.task.claims import Report
from trainer.bench.targeted.bench import measure, run
from trainer.bench.targeted.page import settings
from trainer.bench.targeted.plan import FULL, QUICK
from trainer.bench.targeted.sft import NoGapError

PAGE = Path(__file__).parents[4] / "benchmarks/targeted.md"


def test_the_quick_bench_runs_every_arm_and_takes_up_again_what_its_folder_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def table_of(report: Report) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = json.loads(json.dumps(report.to_json()))["table"]
        return shown

    table = table_of(measure(tmp_path, quick=True))
    assert [(row["world"], row["arm"]) for row in table] == [
        (world, arm) for world, arms in FULL.num_seeds.items() for arm in arms
    ]
    assert (tmp_path / "targeted.png").stat().st_size > 10_000
    assert settings(QUICK) in (tmp_path / "targeted.md").read_text()
    said = capsys.readouterr().err.splitlines()
    done = [line for line in said if re.match(r"\d+/\d+ ", line)]
    assert len(done) == len(QUICK.worlds) + len(table)
    assert [line for line in said if line.startswith("habits: 1 clean steps: error")]

    next(tmp_path.glob("habits-kl-0-*.json")).unlink()
    again = table_of(measure(tmp_path, quick=True))
    assert [row["errors/calls"] for row in again] == [row["errors/calls"] for row in table]
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "1/1 habits kl 0"
    ]


def test_a_policy_without_the_gap_ends_the_bench(tmp_path: Path) -> None:
    never = {
        world: config.model_copy(update={"most_hinted_error": 0.0})
        for world, config in QUICK.worlds.items()
    }
    with pytest.raises(NoGapError, match="after 3 steps of noise: error"):
        run(replace(QUICK, worlds=never), tmp_path)
    assert list(tmp_path.glob("*.json")) == []


def test_the_page_that_is_kept_says_what_is_set() -> None:
    assert settings(FULL) in PAGE.read_text()


def test_the_bench_ends_in_one_line_where_it_cannot_measure(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    command = [sys.executable, "-m", "pipeline", "bench", "targeted", "--quick", "--keep", folder]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as bench:
        assert bench.stderr is not None
        bench.stderr.readline()
        workers = Path(f"/proc/{bench.pid}/task/{bench.pid}/children").read_text().split()
        os.kill(int(workers[0]), signal.SIGKILL)
        said = bench.stderr.read().splitlines()
    assert bench.returncode == 1
    assert re.fullmatch(r"error: (habits|far)-start-\w+: its process ended with SIGKILL", said[-1])
