import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.desk import Folders
from trainer.tiny import save_tiny

CONFIG = """\
tasks = "nowhere"
steps = 2
prompts = 1
group = 2
[model]
tiny = "dense"
device = "cpu"
[rollout]
max_turns = 1
max_context_tokens = 12288
max_new_tokens = 8
"""

Train = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environ(folders: Folders) -> dict[str, str]:
    return {
        **os.environ,
        "REGROW_CACHE": str(folders.cache),
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "run.toml").write_text(CONFIG)
    out = str(tmp_path / "out")
    return [sys.executable, "-m", "pipeline", "train", str(tmp_path / "run.toml"), "--out", out]


@pytest.fixture
def train(command: list[str], environ: dict[str, str]) -> Train:
    def run(*arguments: str, **values: object) -> subprocess.CompletedProcess[str]:
        sets = [it for name, value in values.items() for it in ("--set", f"{name}={value}")]
        return subprocess.run(
            [*command, *arguments, *sets],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


def assert_one_line(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr


def model_folder(folder: Path) -> Path:
    save_tiny(folder, "dense", seed=0)
    return folder


def test_a_dry_run_prints_the_whole_configuration_and_leaves_nothing(
    train: Train, tmp_path: Path
) -> None:
    done = train("--dry-run", seed=7)
    assert done.returncode == 0, done.stderr
    shown, _, rest = done.stdout.rpartition("}\n")
    assert json.loads(shown + "}")["seed"] == 7
    assert rest.startswith("1 prompts x 2 = 2 rollouts a step")
    assert not (tmp_path / "out").exists()


def test_a_key_that_is_unknown_ends_in_one_line(train: Train) -> None:
    assert_one_line(train(sed=7), 2, "run.toml: unknown key sed; did you mean seed?")


def test_a_folder_without_shards_ends_in_one_line(train: Train, tmp_path: Path) -> None:
    assert_one_line(train(), 2, "nowhere: no such folder")
    assert_one_line(train(tasks=str(tmp_path)), 2, "no such file, expected the manifest")


def test_shards_of_another_schema_end_in_one_line(
    train: Train, pantry_run: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(pantry_run, tmp_path / "tasks")
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 999}))
    assert_one_line(train(tasks=str(run)), 2, "schema version 999, expected")


def test_a_tokenizer_without_a_chat_template_ends_in_one_line(train: Train, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (folder / "chat_template.jinja").unlink()
    (tmp_path / "run.toml").write_text(CONFIG.replace('tiny = "dense"', f'source = "{folder}"'))
    assert_one_line(train(), 2, "the tokenizer has no chat template")


def test_a_folder_that_is_no_model_ends_in_one_line(train: Train, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG.replace('tiny = "dense"', f'source = "{tmp_path}"'))
    assert_one_line(train(), 2, str(tmp_path), "expected")


def test_a_model_that_does_not_fit_ends_in_one_line(
    train: Train, pantry_run: Path, tmp_path: Path
) -> None:
    folder = model_folder(tmp_path / "model")
    shape = {"dtype": "F32", "shape": [10**8, 10**8], "data_offsets": [0, 4 * 10**16]}
    header = json.dumps({"model.huge": shape}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (tmp_path / "run.toml").write_text(CONFIG.replace('tiny = "dense"', f'source = "{folder}"'))
    assert_one_line(train(tasks=str(pantry_run)), 2, "does not fit", "GiB are free")
