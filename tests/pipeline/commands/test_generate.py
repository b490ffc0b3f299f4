import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.bench.command import digest_run
from pipeline.task.manifest import read_manifest
from pipeline.task.record import SCHEMA_VERSION
from pipeline.task.shards import read_rejects, read_tasks
from tests.pipeline.commands.conftest import Regrow, kill_at, processes_naming, wait_for_records

POOLED = ("--evidence", "pooled")


def test_a_small_library_gives_a_task_for_each_feature(tiny_run: Path):
    titles = {task.feature.title for task in read_tasks(tiny_run)}
    assert titles == {
        "tiny.words.shout",
        "tiny.words.vowels",
        "tiny.words.title_case",
        "tiny.shapes.area",
        "tiny.shapes.Square",
    }


def test_a_flaky_test_is_quarantined_in_every_task(tiny_run: Path):
    for task in read_tasks(tiny_run):
        reasons = {it.id: it.reason for it in task.evidence.quarantined}
        assert reasons == {"tests/test_shapes.py::test_flaky": "flaky"}


def test_what_only_the_feature_uses_goes_with_it(tiny_run: Path):
    seams = {
        task.feature.symbols[0].name: set(task.deletion.seams) for task in read_tasks(tiny_run)
    }
    assert "tiny/words.py:re" in seams["title_case"]
    assert "tiny/words.py:_VOWELS" in seams["vowels"]
    assert {"tiny/__init__.py:shout", "tests/test_words.py:shout"} <= seams["shout"]


def test_everything_else_is_a_reject_with_its_reason(tiny_run: Path):
    reasons = {(row.subject, row.stage, row.reason) for row in read_rejects(tiny_run)}
    assert reasons == {
        ("tiny.shapes.Square.grow", "feature", "nothing_to_hide"),
        ("tiny.words.shout(times=)", "feature", "reached_by_too_many_tests"),
        ("tiny.words", "feature", "reached_by_too_many_tests"),
        ("tiny.shapes", "feature", "reached_by_too_many_tests"),
    }


def test_only_the_kinds_and_sizes_that_are_wanted_are_tried(
    tiny_manifest: Path, regrow: Regrow, tmp_path: Path
):
    options = ("--kinds", "class, method", "--size", "small")
    done = regrow("generate", tiny_manifest, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert [task.feature.kind for task in read_tasks(tmp_path / "run")] == ["class"]
    rows = list(read_rejects(tmp_path / "run"))
    unwanted = {row.subject: row.detail for row in rows if row.reason == "not_wanted"}
    assert unwanted.keys() == {
        "tiny.words.shout",
        "tiny.words.vowels",
        "tiny.words.title_case",
        "tiny.shapes.area",
    }
    assert set(unwanted.values()) == {"it is a function"}


@pytest.fixture(scope="module")
def pooled_run(
    tiny_manifest: Path, regrow: Regrow, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A finished run of the small library, several deletions to a run of its suite."""
    out = tmp_path_factory.mktemp("pooled") / "tiny"
    done = regrow("generate", tiny_manifest, "--out", out, *POOLED)
    assert done.returncode == 0, done.stderr
    return out


def test_pooled_evidence_gives_the_same_tasks_and_rejects(pooled_run: Path, tiny_run: Path):
    tasks = list(read_tasks(pooled_run))
    assert sum(task.evidence.pooled for task in tasks) > 1
    assert not any(task.evidence.pooled for task in read_tasks(tiny_run))
    unmarked = [replace(it, evidence=replace(it.evidence, pooled=False)) for it in tasks]
    assert unmarked == list(read_tasks(tiny_run))
    assert list(read_rejects(pooled_run)) == list(read_rejects(tiny_run))
    for run, evidence in ((pooled_run, "pooled"), (tiny_run, "individual")):
        assert read_manifest(run).config["evidence"] == evidence


@pytest.mark.parametrize(
    ("run", "options"),
    [
        ("tiny_run", ("--jobs", 1)),
        ("tiny_run", ("--runner", "plain")),
        ("pooled_run", (*POOLED, "--jobs", 1, "--runner", "plain")),
    ],
)
def test_another_way_of_running_writes_the_same_bytes(
    run: str,
    options: tuple[object, ...],
    request: pytest.FixtureRequest,
    tiny_manifest: Path,
    regrow: Regrow,
    tmp_path: Path,
):
    done = regrow("generate", tiny_manifest, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path / "run") == digest_run(request.getfixturevalue(run))


def test_a_second_run_does_nothing_and_changes_nothing(
    tiny_manifest: Path, tiny_run: Path, regrow: Regrow
):
    before = digest_run(tiny_run)
    records = {path: path.stat().st_mtime_ns for path in (tiny_run / "done").iterdir()}
    done = regrow("generate", tiny_manifest, "--out", tiny_run, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["num_tasks"]) == (0, 5)
    assert digest_run(tiny_run) == before
    assert {path: path.stat().st_mtime_ns for path in (tiny_run / "done").iterdir()} == records


def test_another_seed_in_the_same_folder_leaves_nothing_behind_and_can_be_taken_back(
    tiny_manifest: Path, regrow: Regrow, tmp_path: Path
):
    found = []
    for seed in (0, 1, 0):
        options = ("--seed", seed, "--max-tasks", 1, "--runner", "plain")
        done = regrow("generate", tiny_manifest, "--out", tmp_path, *options)
        assert done.returncode == 0, done.stderr
        found.append(digest_run(tmp_path))
        assert len(list((tmp_path / "transcripts").iterdir())) == 1
        # As a run of other Repos would leave it.
        [snapshot] = (tmp_path / "snapshots").iterdir()
        snapshot.unlink()
    assert found[0] == found[2] != found[1]


def test_killed_at_three_moments_and_rerun_it_writes_the_same_bytes(
    tiny_manifest: Path,
    tiny_run: Path,
    environ: dict[str, str],
    regrow: Regrow,
    tmp_path: Path,
):
    arguments = ("generate", str(tiny_manifest), "--out", str(tmp_path / "run"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for num_records in (1, 2, 4):
        kill_at(num_records, arguments, tmp_path / "run", {**environ, "TMPDIR": str(temporary)})
    done = regrow(*arguments)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path / "run") == digest_run(tiny_run)
    # But for what is known of the machine, which is kept on purpose.
    assert not {it.name for it in temporary.iterdir()} - {f"regrow-system-{os.getuid()}"}


def test_killed_before_and_after_a_pool_and_rerun_it_writes_the_same_bytes(
    tiny_manifest: Path,
    pooled_run: Path,
    environ: dict[str, str],
    regrow: Regrow,
    tmp_path: Path,
):
    arguments = ("generate", str(tiny_manifest), "--out", str(tmp_path), *POOLED)
    for num_records in (1, 2):
        kill_at(num_records, arguments, tmp_path, environ)
    done = regrow(*arguments)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path) == digest_run(pooled_run)


def test_an_interrupt_stops_it_without_orphans(
    tiny_manifest: Path, environ: dict[str, str], tmp_path: Path
):
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "generate", str(tiny_manifest), "--out", str(tmp_path)],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_records(tmp_path / "done", 1, process)
    process.send_signal(signal.SIGINT)
    # Far less than what is left to do would take on the busiest machine.
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert not processes_naming(str(tmp_path))


def test_two_commands_do_not_share_a_run_folder(
    tiny_manifest: Path, environ: dict[str, str], regrow: Regrow, tmp_path: Path
):
    command = ["generate", str(tiny_manifest), "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline", *command],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:
        wait_for_records(tmp_path / "done", 1, first)
        first.send_signal(signal.SIGSTOP)  # else it may be done before the second has started
        second = regrow(*command)
        first.send_signal(signal.SIGCONT)
        assert second.returncode == 2
        assert "another `regrow` command is at work here" in second.stderr
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=20) == 130


def test_a_disk_that_fills_up_loses_nothing(
    tiny_manifest: Path, tiny_run: Path, regrow: Regrow, tmp_path: Path
):
    def small_files() -> None:
        import resource  # noqa: PLC0415  for the child alone

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    run = tmp_path / "run"
    command = ("generate", tiny_manifest, "--out", run, "--runner", "plain")
    full = regrow(*command, preexec_fn=small_files)
    assert full.returncode == 1
    last = full.stderr.strip().splitlines()[-1]
    assert last.startswith("error: tiny: OSError: ")
    assert "File too large" in last
    assert last.endswith("run the same command again")
    assert not (run / "manifest.json").exists()
    done = regrow(*command)
    assert done.returncode == 0, done.stderr
    assert digest_run(run) == digest_run(tiny_run)


def test_a_folder_of_another_schema_version_is_refused_untouched(
    tiny_manifest: Path, regrow: Regrow, tmp_path: Path
):
    (tmp_path / "manifest.json").write_text('{"schema_version": 99, "config": {}, "files": []}')
    done = regrow("generate", tiny_manifest, "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().endswith(
        f"manifest.json: schema version 99, expected {SCHEMA_VERSION}"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]
