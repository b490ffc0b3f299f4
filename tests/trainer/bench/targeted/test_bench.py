import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.task.claims import Report
from trainer.bench.targeted.bench import FULL, QUICK, measure, run
from trainer.bench.targeted.sft import NoGapError


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
    done = capsys.readouterr().err.splitlines()
    assert len(done) == len(QUICK.worlds) + len(table)

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
    with pytest.raises(NoGapError, match="after 5 steps of noise: error"):
        run(replace(QUICK, worlds=never), tmp_path)
    assert list(tmp_path.glob("*.json")) == []
