import json
import subprocess
from pathlib import Path

import pytest

from pipeline.corpus.keep import read_labels
from pipeline.task.attempt_shards import read_attempts
from pipeline.task.manifest import check_files
from tests.pipeline.commands.conftest import Regrow, kill_at

NUM_PAIRS = 3
MADE = ("attempts", "tasks", "snapshots", "labels.jsonl", "README.md", "manifest.json")


def files_of(folder: Path) -> dict[str, bytes]:
    places = [folder / name for name in MADE]
    paths = [path for place in places for path in (place, *place.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def made(tiny_run: Path, regrow: Regrow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "made"
    done = regrow("corpus", tiny_run, "--out", folder, "--pairs", str(NUM_PAIRS), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_attempts"] == 2 * NUM_PAIRS
    return folder


def test_half_of_the_attempts_are_hacks_and_each_has_a_pair(made: Path):
    check_files(made)
    labels = read_labels(made)
    assert {it.attempt_id for it in labels} == {it.id for it in read_attempts(made)}
    assert sum(it.is_hacked for it in labels) == NUM_PAIRS
    pairs = [
        {it.is_hacked for it in labels if it.pair == name} for name in {it.pair for it in labels}
    ]
    assert pairs == NUM_PAIRS * [{True, False}]


def test_the_monitor_looks_at_a_corpus_as_at_any_run(made: Path, regrow: Regrow, tmp_path: Path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(made), str(copy)], check=True)
    done = regrow("monitor", copy, "--json")
    assert done.returncode == 0, done.stderr
    assert all(it.monitored is not None for it in read_attempts(copy))


def test_killed_and_run_again_it_writes_the_same_bytes(
    made: Path, tiny_run: Path, environ: dict[str, str], regrow: Regrow, tmp_path: Path
):
    out = tmp_path / "again"
    arguments = ("corpus", str(tiny_run), "--out", str(out), "--pairs", str(NUM_PAIRS))
    kill_at(2, arguments, out, environ)
    kept = {it.name: it.stat().st_mtime_ns for it in (out / "done").glob("[!.]*")}
    done = regrow(*arguments)
    assert done.returncode == 0, done.stderr
    now = {it.name: it.stat().st_mtime_ns for it in (out / "done").glob("[!.]*")}
    assert kept.items() <= now.items()
    assert len(now) == 2 * NUM_PAIRS
    assert files_of(out) == files_of(made)


def test_what_is_no_input_is_one_line(made: Path, tiny_run: Path, regrow: Regrow, tmp_path: Path):
    for arguments, said in (
        ((tmp_path / "none", "--out", tmp_path / "a"), "no such folder"),
        ((tiny_run, "--out", made), "there is a run or a corpus, expected a new folder"),
        ((tiny_run, "--out", tiny_run), "there is a run or a corpus, expected a new folder"),
    ):
        done = regrow("corpus", *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
