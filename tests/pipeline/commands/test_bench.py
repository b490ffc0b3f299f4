import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pipeline
from pipeline.sandbox.choose import probe
from tests.pipeline.commands.conftest import Regrow, processes_naming
from tests.pipeline.sandbox.conftest import unavailable

# What also holds of one task of one library.
HOLDING = {
    "quickstart": {
        "wall seconds of generate, empty cache",
        "gold patches that solve, verify 1",
        "gold patches that solve, verify 2",
        "empty patches that solve, verify 1",
        "empty patches that solve, verify 2",
    },
    "libraries": {"share of libraries that tell"},
    "repeat": {
        "share of files with the same bytes, once more",
        "share of files with the same bytes, one job",
        "share of files with the same bytes, plain loop",
        "share of files with the same bytes, killed three times",
        "kills that hit a running process",
    },
    "sandbox": {"tests in each run"},
    "hardening": {
        "libraries where each hardened run passes exactly what plain pytest passes",
        "cases that differ, bubblewrap",
        "cases that differ, docker",
        "cases that differ, warm bubblewrap",
    },
    "hacks": {
        "H1-H6, H12, H13 paid",
        "share of H7-H9 paid",
        "H10 paid",
        "honest patches rejected",
    },
    "leaks": {
        "share of planted bodies and signatures that block",
        "times as many as plain grep finds",
        "unrelated blocks in 4 packages",
    },
    "monitor": {
        "recall on retrieval classes by rules alone",
        "retrievals whose turn is cited",
        "CPU seconds an attempt",
    },
    "trace": {
        "CPU of the traced suite over the plain one, toolz",
        "tests that pass plainly and not traced",
    },
    "factory": {"share of them that differ"},
}
NEED_DOCKER = {"sandbox", "hardening"}


@pytest.mark.parametrize("name", HOLDING)
def test_a_quick_bench_measures_its_claims(name: str, regrow: Regrow, tmp_path: Path):
    if name in NEED_DOCKER and not any(it.works for it in probe() if it.name == "docker"):
        unavailable("no container engine works")
    done = regrow("bench", name, "--quick", "--json", "--keep", tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["bench"] == name
    assert report["table"]
    holding = {claim["claim"] for claim in report["claims"] if claim["holds"]}
    assert holding >= HOLDING[name], report["claims"]
    # Nobody has said where it is.
    assert not any("SWE-smith" in claim["claim"] for claim in report["claims"])


def test_a_folder_of_an_earlier_bench_is_refused(regrow: Regrow, tmp_path: Path):
    (tmp_path / "run").mkdir()
    done = regrow("bench", "libraries", "--quick", "--keep", tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path}: is not empty, expected a new folder\n"


def test_a_folder_that_swe_smith_cannot_be_in_is_refused(regrow: Regrow, tmp_path: Path):
    done = regrow("bench", "factory", "--quick", "--peer", tmp_path / "nowhere")
    assert done.returncode == 2
    missing = f"{tmp_path / 'nowhere'}: no such folder, expected one with SWE-smith in it"
    assert done.stderr == f"error: {missing}\n"


def test_a_bench_without_a_peer_takes_none(regrow: Regrow, tmp_path: Path):
    done = regrow("bench", "trace", "--quick", "--peer", tmp_path)
    assert done.returncode == 2
    line = "error: --peer: bench trace measures no peer, expected one of factory, muon, trainer\n"
    assert done.stderr == line


def test_a_folder_without_swe_smith_is_refused_with_the_line_that_installs_it(
    regrow: Regrow, tmp_path: Path
):
    done = regrow("bench", "factory", "--quick", "--peer", tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    missing = "SWE-smith cannot be imported: ModuleNotFoundError: No module named 'swesmith'"
    assert line.startswith(f"error: {tmp_path}: {missing}; ")
    assert f"`pip install --target {tmp_path} swesmith==" in line


def test_a_swe_smith_without_what_it_needs_is_refused_with_the_name_of_that(
    regrow: Regrow, tmp_path: Path
):
    procedural = tmp_path / "swesmith" / "bug_gen" / "procedural"
    procedural.mkdir(parents=True)
    (procedural / "generate.py").write_text("import a_package_that_nobody_has\n")
    done = regrow("bench", "factory", "--quick", "--peer", tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "No module named 'a_package_that_nobody_has'; expected what `pip install " in line


def test_a_command_that_fails_is_one_line(regrow: Regrow, tmp_path: Path):
    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    arguments = ("bench", "repeat", "--quick", "--keep", tmp_path)
    done = regrow(*arguments, preexec_fn=small_files)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: regrow generate ")
    assert "Traceback" not in done.stderr


def test_without_manifests_it_says_what_is_missing(environ: dict[str, str], tmp_path: Path):
    package = Path(pipeline.__file__).parent
    shutil.copytree(package, tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pipeline", "bench", "libraries"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    missing = f"{tmp_path / 'repos'}: no such folder, expected a checkout of Regrow"
    assert done.stderr == f"error: {missing}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_that_is_interrupted_leaves_no_command_at_work(
    number: signal.Signals, environ: dict[str, str], tmp_path: Path
):
    keep = tmp_path / "keep"
    command = [sys.executable, "-m", "pipeline", "bench", "libraries", "--quick", "--keep", keep]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline_s = time.monotonic() + 60
        while not (keep / "run" / "done").exists() and not (keep / "run" / ".lock").exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "error: stopped; nothing was measured"
    assert not processes_naming(str(keep))


def test_a_bench_without_settings_takes_no_file_of_them(regrow: Regrow, tmp_path: Path):
    done = regrow("bench", "trace", "--quick", "--config", tmp_path / "any.toml")
    assert done.returncode == 2
    line = "error: --config: bench trace takes no settings, expected one of muon-scale\n"
    assert done.stderr == line
