"""A task whose answer lies about is none, wherever it lies and whatever it is wrapped in."""

import importlib.util
import io
import json
import marshal
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.certify import certify, open_gate, refuse_leaks
from pipeline.desk import Folders
from pipeline.task.certificate import NOT_SCANNED
from pipeline.task.grade import Desk
from pipeline.task.record import Instruction, Task
from tests.pipeline import pantry
from tests.pipeline.conftest import TaskOf

MODULE = "pantry/units.py"


def packed(content: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pantry/old.py", content)
    return made.getvalue()


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


@pytest.fixture(scope="module")
def desk(pantry_desk: Desk) -> Desk:
    return pantry_desk


def with_file(desk: Desk, path: str, content: bytes, *, folder: Path) -> Desk:
    """Return a desk whose tree has one more file."""
    tree = folder / "tree"
    shutil.copytree(desk.tree, tree, symlinks=True)
    (tree / path).parent.mkdir(exist_ok=True, parents=True)
    (tree / path).write_bytes(content)
    return replace(desk, tree=tree)


def test_a_made_task_carries_a_clean_certificate(task: Task):
    assert task.leaks.verdict == "clean"
    assert task.leaks.num_files >= len(pantry.FILES)
    assert not any(it.blocks for it in task.leaks.findings)
    assert task.leaks.unread == ()


def test_the_same_scan_comes_to_the_same_certificate(task: Task, desk: Desk, folders: Folders):
    assert certify(task, desk=desk, folders=folders) == task.leaks


def compiled(content: str) -> bytes:
    code = marshal.dumps(compile(content, MODULE, "exec"))
    return importlib.util.MAGIC_NUMBER + bytes(12) + code


LITTER: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "a type checker's cache": lambda code: (
        ".mypy_cache/3.11/pantry/units.data.json",
        json.dumps({"source": code}).encode(),
    ),
    "bytecode": lambda code: ("pantry/__pycache__/units.cpython-311.pyc", compiled(code)),
    "a backup": lambda code: ("pantry/units.py.orig", code.encode()),
    "an archive": lambda code: ("assets/kitchen.bin", packed(code)),
    "a notebook": lambda code: (
        "tour.ipynb",
        json.dumps({"cells": [{"cell_type": "code", "source": code.splitlines(True)}]}).encode(),
    ),
    "a test that keeps a reference": lambda code: ("tests/reference.py", code.encode()),
    "the same code once more": lambda code: ("pantry/legacy.py", code.encode()),
}


@pytest.mark.parametrize("kind", LITTER)
def test_a_copy_in_the_tree_refuses_the_task(
    kind: str, task: Task, desk: Desk, folders: Folders, tmp_path: Path
):
    path, content = LITTER[kind](pantry.FILES[MODULE])
    littered = with_file(desk, path, content, folder=tmp_path)
    found = certify(task, desk=littered, folders=folders)
    assert found.verdict == "leaks", found.findings
    worst = found.findings[0]
    assert worst.path == f"/work/{path}"
    assert worst.symbol in {f"{MODULE}:convert", f"{MODULE}:_factor"}
    assert "body" in worst.parts
    reject = refuse_leaks(found)
    assert reject is not None
    assert (reject.stage, reject.reason) == ("leaks", "body")
    assert path in reject.detail


def test_a_copy_in_the_environment_refuses_the_task(
    task: Task, desk: Desk, folders: Folders, tmp_path: Path
):
    environment = tmp_path / "environment"
    shutil.copytree(desk.bench.environment, environment, symlinks=True)
    packages = next(environment.glob("lib/python3*/site-packages"))
    (packages / "larder.py").write_text(pantry.FILES[MODULE])
    littered = replace(desk, bench=replace(desk.bench, environment=environment))
    found = certify(task, desk=littered, folders=folders)
    assert found.verdict == "leaks"
    assert found.findings[0].path.endswith("site-packages/larder.py")


def test_a_request_that_quotes_the_code_refuses_the_task(task: Task, desk: Desk, folders: Folders):
    quoting = Instruction(style="specification", text=pantry.FILES[MODULE])
    found = certify(replace(task, instructions=(quoting,)), desk=desk, folders=folders)
    assert found.findings[0].channel == "instruction"
    assert found.verdict == "leaks"


def test_what_cannot_be_read_leaves_the_task_without_a_certificate(
    task: Task, desk: Desk, folders: Folders, tmp_path: Path
):
    whole = packed("".join(f"name_{number} = {number**7}\n" for number in range(1000)))
    broken = whole[: len(whole) // 2] + bytes(len(whole) // 2)
    littered = with_file(desk, "broken.zip", broken, folder=tmp_path)
    found = certify(task, desk=littered, folders=folders)
    assert found.verdict == "unread"
    assert any("broken.zip" in it for it in found.unread)
    reject = refuse_leaks(found)
    assert reject is not None
    assert reject.reason == "unread"


def test_nothing_that_was_not_scanned_is_taken_for_clean():
    reject = refuse_leaks(NOT_SCANNED)
    assert reject is not None
    assert reject.detail == "not all could be scanned: all: not scanned"


def test_what_all_tasks_of_a_repo_see_is_scanned_once(desk: Desk, folders: Folders):
    assert open_gate(desk, folders) is open_gate(desk, folders)
