import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.bench.command import digest_run
from pipeline.task.shards import read_rejects, read_tasks
from tests.pipeline.commands.conftest import LIBRARY, Regrow, entry, write_tree


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
    assert reasons == {("tiny.shapes.Square.grow", "selection", "overlaps")}


@pytest.mark.parametrize("options", [("--jobs", 1), ("--runner", "plain")], ids=["one", "plain"])
def test_another_way_of_running_writes_the_same_bytes(
    options: tuple[object, ...],
    tiny_manifest: Path,
    tiny_run: Path,
    regrow: Regrow,
    tmp_path: Path,
):
    done = regrow("generate", tiny_manifest, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path / "run") == digest_run(tiny_run)


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
    assert found[0] == found[2] != found[1]
    [transcript] = (tmp_path / "transcripts").iterdir()
    [snapshot] = (tmp_path / "snapshots").iterdir()
    transcript.unlink()
    snapshot.unlink()
    done = regrow("generate", tiny_manifest, "--out", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path) == found[0]


def test_killed_at_three_moments_and_rerun_it_writes_the_same_bytes(
    tiny_manifest: Path,
    tiny_run: Path,
    environ: dict[str, str],
    regrow: Regrow,
    tmp_path: Path,
):
    arguments = ("generate", str(tiny_manifest), "--out", str(tmp_path / "run"))
    for num_records in (1, 2, 4):
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", *arguments],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_for_records(tmp_path / "run" / "done", num_records, process)
        process.kill()
        process.wait()
    done = regrow(*arguments)
    assert done.returncode == 0, done.stderr
    assert digest_run(tmp_path / "run") == digest_run(tiny_run)


def test_an_interrupt_stops_within_seconds_without_orphans(
    tiny_manifest: Path, environ: dict[str, str], tmp_path: Path
):
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "generate", str(tiny_manifest), "--out", str(tmp_path)],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for_records(tmp_path / "done", 1, process)
    began_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - began_s < 5
    assert "the same command goes on" in said
    assert not _processes_naming(str(tmp_path))


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
        _wait_for_records(tmp_path / "done", 1, first)
        second = regrow(*command)
        assert second.returncode == 2
        assert "another `regrow generate` is at work here" in second.stderr
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
    full = regrow("generate", tiny_manifest, "--out", run, preexec_fn=small_files)
    assert full.returncode == 1
    last = full.stderr.strip().splitlines()[-1]
    assert last.startswith("error: tiny: OSError: ")
    assert "File too large" in last
    assert last.endswith("run the same command again")
    assert not (run / "manifest.json").exists()
    done = regrow("generate", tiny_manifest, "--out", run)
    assert done.returncode == 0, done.stderr
    assert digest_run(run) == digest_run(tiny_run)


def test_a_folder_of_another_schema_version_is_refused_untouched(
    tiny_manifest: Path, regrow: Regrow, tmp_path: Path
):
    (tmp_path / "manifest.json").write_text('{"schema_version": 99, "config": {}, "files": []}')
    done = regrow("generate", tiny_manifest, "--out", tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("manifest.json: schema version 99, expected 1")
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[repo]]\nname = "a"\nnonsense = 1\n', "bad.toml:3: repo.nonsense: unknown key"),
        ('[[repo]]\nname = "a"\nlicence = 3\n', "bad.toml:3: repo.licence: "),
        ("[[repo]\n", "bad.toml:1: "),
    ],
)
def test_a_fault_in_the_manifest_is_one_line_with_file_line_and_key(
    text: str, said: str, regrow: Regrow, tmp_path: Path
):
    (tmp_path / "bad.toml").write_text(text)
    done = regrow("generate", tmp_path / "bad.toml", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


# Name -> (suite, what the one line says).
BAD_SUITES = {
    "untested": ("", "baseline: no_tests"),
    "red": (
        """\
        def test_a():
            assert 0

        def test_b():
            pass

        def test_c():
            1 / 0
        """,
        "baseline: red: 1 of 3",
    ),
    "hanging": (
        """\
        import time

        def test_a():
            time.sleep(900)
        """,
        "baseline: wall",
    ),
    "forking": (
        """\
        import os

        def test_a():
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
        "baseline: processes",
    ),
    "hungry": (
        """\
        import os, time

        def test_a():
            for _ in range(3):
                if os.fork() == 0:
                    held = bytearray(3 * 2**30 // 2)
                    time.sleep(60)
            held = bytearray(3 * 2**30 // 2)
            time.sleep(60)
        """,
        "baseline: memory",
    ),
    "talking": (
        """\
        import os

        def test_a(capfd):
            with capfd.disabled():
                for _ in range(2**10):
                    os.write(1, b"x" * 2**20)
        """,
        "baseline: output",
    ),
}


@pytest.fixture(scope="module")
def bad_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of bad Repos around a good one."""
    folder = tmp_path_factory.mktemp("many")
    text = ""
    for name, (suite, _) in BAD_SUITES.items():
        files = {f"{name}.py": "def one():\n    return 1\n"}
        write_tree(folder / name, files | ({"test_it.py": suite} if suite else {}))
        # Short for the one that runs into it; long enough for the others on a busy machine.
        text += entry(name, f'path = "{name}"', wall_s=0.2 if name == "hanging" else 3.0)
    write_tree(folder / "tiny", LIBRARY)
    write_tree(folder / "cloned", LIBRARY)
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *command]
        subprocess.run(git, cwd=folder / "cloned", check=True)
    text += entry("tiny", 'path = "tiny"')
    text += entry("lost", f'git = "{folder}/cloned"\ncommit = "{"0" * 40}"')
    text += entry("away", f'git = "http://127.0.0.1:9/none.git"\ncommit = "{"1" * 40}"')
    text += entry("forged", f'sdist = "iniconfig==2.0.0"\nsha256 = "{"2" * 64}"')
    (folder / "many.toml").write_text(text)
    return folder / "many.toml"


def test_each_bad_repo_is_one_line_and_costs_the_others_nothing(
    bad_sources: Path, tiny_run: Path, regrow: Regrow, tmp_path: Path
):
    done = regrow("generate", bad_sources, "--out", tmp_path, "--json")
    assert done.returncode == 2, done.stderr
    expected = {name: said for name, (_, said) in BAD_SUITES.items()} | {
        "lost": "fetch: no_such_commit",
        "away": "fetch: unreachable",
        "forged": "fetch: wrong_hash",
    }
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for name, said in expected.items():
        mine = [line for line in lines if line.startswith(f"error: {name}: ")]
        assert len(mine) == 1, (name, lines)
        assert said in mine[0]
    assert len(lines) == len(expected)
    assert {task.id for task in read_tasks(tmp_path)} == {task.id for task in read_tasks(tiny_run)}
    assert not _processes_naming(str(tmp_path))


def _wait_for_records(folder: Path, number: int, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 120
    while len(list(folder.glob("[!.]*.json"))) < number:
        assert time.monotonic() < deadline_s
        if process.poll() is not None:
            return
        time.sleep(0.02)


def _processes_naming(text: str) -> list[str]:
    """Return the command lines, ours aside, that hold a text, once the kernel has cleaned up."""
    deadline_s = time.monotonic() + 3
    while found := [line for line in _command_lines() if text in line]:
        if time.monotonic() > deadline_s:
            return found
        time.sleep(0.05)
    return []


def _command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if path.parent.name != str(os.getpid()):
            lines.append(text)
    return lines
