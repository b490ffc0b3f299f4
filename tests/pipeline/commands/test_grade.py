"""One patch is graded from the shards alone, and a receipt is checked by grading again."""

import json
from pathlib import Path

import pytest

from pipeline.task.record import Task
from pipeline.task.shards import read_tasks
from tests.pipeline.commands.conftest import Regrow


@pytest.fixture(scope="module")
def task(tiny_run: Path) -> Task:
    return next(it for it in read_tasks(tiny_run) if it.feature.title == "tiny.words.title_case")


@pytest.fixture(scope="module")
def gold(task: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    patch = tmp_path_factory.mktemp("patch") / "gold.diff"
    patch.write_text(task.deletion.gold_patch)
    return patch


def test_a_patch_is_graded_and_its_receipt_graded_again(
    tiny_run: Path, task: Task, gold: Path, tmp_path: Path, regrow: Regrow
):
    receipt = tmp_path / "receipt.json"
    done = regrow("grade", tiny_run, "--task", task.id, "--patch", gold, "--receipt", receipt)
    assert (done.returncode, done.stdout) == (0, f"{task.id}: solved\n"), done.stderr
    kept = json.loads(receipt.read_text())
    assert (kept["verdict"], kept["patch"]) == ("solved", task.deletion.gold_patch)
    again = regrow("grade", tiny_run, "--receipt", receipt)
    assert (again.returncode, again.stdout) == (0, f"{task.id}: solved, as the receipt says\n")
    other = regrow("grade", tiny_run, "--receipt", receipt, "--task", "other")
    assert other.returncode == 2
    assert other.stderr.endswith(f"a receipt of {task.id}, expected one of other\n")


def test_a_receipt_that_says_otherwise_fails_in_one_line(
    tiny_run: Path, task: Task, gold: Path, tmp_path: Path, regrow: Regrow
):
    receipt = tmp_path / "receipt.json"
    regrow("grade", tiny_run, "--task", task.id, "--patch", gold, "--receipt", receipt)
    receipt.write_text(receipt.read_text().replace('"verdict":"solved"', '"verdict":"unsolved"'))
    done = regrow("grade", tiny_run, "--receipt", receipt, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "task": task.id,
        "verdict": "unsolved",
        "difference": "verdict was unsolved, is solved",
    }
    told = regrow("grade", tiny_run, "--receipt", receipt)
    assert told.returncode == 1
    line = f"DIFFERS {task.id}: verdict was unsolved, is solved"
    assert told.stderr.strip().splitlines()[-1] == line


def test_what_is_set_aside_and_broken_is_shown(
    tiny_run: Path, task: Task, tmp_path: Path, regrow: Regrow
):
    patch = tmp_path / "no.diff"
    patch.write_text(
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n"
        "--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+raise SystemExit(0)\n"
    )
    done = regrow("grade", tiny_run, "--task", task.id[:10], "--patch", patch)
    assert done.returncode == 0, done.stderr
    assert f"{task.id}: unsolved" in done.stdout
    assert "conftest.py  dropped   configures the tests" in done.stdout
    assert "tests/test_words.py::test_title_case" in done.stdout
    shown = json.loads(
        regrow("grade", tiny_run, "--task", task.id, "--patch", patch, "--json").stdout
    )
    assert shown["verdict"] == "unsolved"
    assert {it["id"] for it in shown["broken"]} >= {it.id for it in task.evidence.fail_to_pass}
    assert [it["decision"] for it in shown["receipt"]["decisions"]] == ["dropped"]


BAD = {
    "nothing": ((), "nothing to grade: expected --task with --patch, or --receipt"),
    "no task": (("--patch", "{gold}"), "no --task is named, expected one of 5"),
    "an unknown task": (("--patch", "{gold}", "--task", "no"), "0 tasks start with 'no'"),
    "an unclear task": (("--patch", "{gold}", "--task", "tiny"), "5 tasks start with 'tiny'"),
    "no patch": (("--patch", "{run}/gone", "--task", "tiny"), "expected a unified diff"),
    "no folder": (("--patch", "{gold}", "--receipt", "{run}/gone/receipt"), "in a folder that is"),
    "no receipt": (("--receipt", "{run}/gone"), "gone"),
    "another file": (("--receipt", "{run}/manifest.json"), "no receipt of a grade: KeyError"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(tiny_run: Path, gold: Path, regrow: Regrow, name: str):
    arguments, message = BAD[name]
    done = regrow("grade", tiny_run, *(it.format(gold=gold, run=tiny_run) for it in arguments))
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert message in line
