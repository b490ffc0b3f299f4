"""What the agent takes away, and what makes it give up."""

import hashlib

import pytest

from pipeline.agent.loop import read_transcript
from pipeline.deletion import find_undefined
from pipeline.desk import Folders
from pipeline.make import make_task
from pipeline.prepare import Prepared
from pipeline.task.grade import Desk
from pipeline.task.patch import apply_patch, is_protected, patch_paths
from pipeline.task.record import Deletion, Feature, Task
from pipeline.task.reject import Reject
from pipeline.task.tree import apply_changes, read_tree
from tests.pipeline import pantry
from tests.pipeline.conftest import TaskOf

SNAPSHOT = {path: text.encode() for path, text in pantry.FILES.items()}

UNITS = '''\
"""Amounts and their units."""

import re


def parse_amount(text):
    """Split a text such as `2.5 kg` into number and unit."""
    match = re.fullmatch(r"([0-9.]+) *([a-z]+)", text)
    if match is None:
        raise ValueError(text)
    return float(match[1]), match[2]
'''


@pytest.fixture(scope="module")
def convert(task_of: TaskOf) -> Task:
    task = task_of("pantry.units.convert")
    assert isinstance(task, Task), task
    return task


def ablated(deletion: Deletion) -> dict[str, bytes]:
    return apply_changes(SNAPSHOT, apply_patch(SNAPSHOT, deletion.patch))


def test_a_function_goes_with_its_helper_its_constant_and_every_name_of_it(convert: Task):
    changed = ablated(convert.deletion)
    assert changed.keys() == SNAPSHOT.keys()
    assert changed["pantry/units.py"].decode() == UNITS
    init = pantry.FILES["pantry/__init__.py"]
    assert changed["pantry/__init__.py"].decode() == init.replace(
        "import convert, parse_amount", "import parse_amount"
    ).replace('    "convert",\n', "")
    tests = pantry.FILES["tests/test_units.py"]
    assert changed["tests/test_units.py"].decode() == tests.replace(
        "from pantry import convert\n", ""
    )
    assert convert.deletion.paths == (
        "pantry/__init__.py",
        "pantry/units.py",
        "tests/test_units.py",
    )


def test_what_went_besides_is_listed(convert: Task):
    assert convert.deletion.seams == (
        "pantry/__init__.py:convert",
        "pantry/units.py:_FACTORS",
        "tests/test_units.py:convert",
    )
    removed = [line for line in convert.deletion.patch.splitlines() if line.startswith("-")]
    names = [line for line in removed if line.startswith("--- ")]
    assert convert.deletion.num_removed_lines == len(removed) - len(names)


def test_the_gold_patch_undoes_all_but_protected_files(convert: Task):
    before = ablated(convert.deletion)
    gold = apply_patch(before, convert.deletion.gold_patch)
    assert not [path for path in gold if is_protected(path)]
    assert apply_changes(before, gold) == {
        path: before[path] if is_protected(path) else content for path, content in SNAPSHOT.items()
    }


def test_the_snapshot_on_disk_is_untouched(convert: Task, pantry_desk: Desk):
    assert convert.deletion.patch
    assert read_tree(pantry_desk.tree) == SNAPSHOT


def test_the_transcript_tells_each_turn_and_is_named_by_its_digest(convert: Task, folders: Folders):
    data = (folders.run / "transcripts" / f"{convert.id}.jsonl").read_bytes()
    turns = read_transcript(data)
    assert hashlib.sha256(data).hexdigest() == convert.provenance.transcript
    tools = [turn.tool for turn in turns]
    assert tools == ["edit_files", "import_modules", "run_tests"]
    assert turns[0].output == "edited: pantry/__init__.py, pantry/units.py, tests/test_units.py"
    assert turns[1].output == "all import"
    assert "DOES NOT COLLECT" not in turns[2].output


def test_an_import_that_no_analysis_sees_is_found_by_collecting(task_of: TaskOf):
    task = task_of("pantry.odd.hum")
    assert isinstance(task, Task), task
    assert patch_paths(task.deletion.patch) == ("pantry/odd.py", "tests/test_lazy.py")
    lines = ablated(task.deletion)["tests/test_lazy.py"].decode().splitlines()
    assert lines[0] == "from pantry.lazy import whisper"
    assert patch_paths(task.deletion.gold_patch) == ("pantry/odd.py",)


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("howl", "used_at_import", "pantry.lazy: KeyError: 'howl'"),
    ],
)
def test_a_deletion_that_goes_wrong_is_given_up(
    task_of: TaskOf, name: str, reason: str, detail: str
):
    result = task_of(f"pantry.odd.{name}")
    assert result == Reject(stage="deletion", reason=reason, detail=detail)


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        (
            "growl",
            "others_break",
            "1 other tests are not run, first: tests/test_growl.py::test_other",
        ),
        (
            "sigh",
            "target_survives",
            "1 of 1 targets do not break: tests/test_odd.py::test_sigh: passed",
        ),
    ],
)
def test_a_deletion_that_breaks_too_much_or_too_little_is_refused(
    task_of: TaskOf, name: str, reason: str, detail: str
):
    result = task_of(f"pantry.odd.{name}")
    assert result == Reject(stage="validation", reason=reason, detail=detail)


@pytest.mark.parametrize(
    ("path", "after", "detail"),
    [
        ("pkg/a.py", "def f():\n    return gone()\n", "gone at pkg/a.py:2"),
        ("pkg/a.py", "__all__ = ['f', 'gone']\n\n\ndef f(): ...\n", "gone at pkg/a.py:1"),
        ("pkg/a.py", "import os\n\n\ndef f(): ...\n", ""),
        ("pkg/a.py", "def f():\n    return lost()\n", ""),
        ("tests/test_a.py", "def test():\n    gone()\n", ""),
        ("pkg/a.py", "def (\n", ""),
    ],
)
def test_a_tree_that_uses_a_name_which_went_is_told(path: str, after: str, detail: str):
    before = {path: b"def gone(): ...\n\n\ndef f():\n    return lost(gone)\n"}
    assert find_undefined(before, {path: after.encode()}) == detail
    assert find_undefined(before, {path: None}) == ""


def test_a_module_goes_as_a_file(task_of: TaskOf):
    task = task_of("pantry.labels")
    assert isinstance(task, Task), task
    assert task.feature.kind == "module"
    assert "pantry/labels.py" not in ablated(task.deletion)
    assert "Label" not in ablated(task.deletion)["pantry/__init__.py"].decode()


def candidate(prepared: Prepared, title: str) -> Feature:
    return next(it for slot in prepared.slots for it in slot if it.title == title)


def test_the_same_candidate_makes_the_same_task(
    convert: Task, prepared: Prepared, pantry_desk: Desk, folders: Folders
):
    feature = candidate(prepared, "pantry.units.convert")
    again = make_task(feature, prepared=prepared, desk=pantry_desk, folders=folders, seed=0)
    assert again == convert
