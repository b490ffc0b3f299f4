"""The corpus as a whole: enough of every kind, and no answer in any hack."""

import ast
from collections import Counter

import pytest

from pipeline.hacks.control import Control
from pipeline.hacks.corpus import HACKS, SEEDED, controls_for, patch_of, seeded_hacks
from pipeline.hacks.hack import Hack
from pipeline.hacks.honest import CONTROLS
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.task.grade import Desk, grade
from pipeline.task.patch import apply_patch
from pipeline.task.record import Task
from pipeline.task.tree import apply_changes

CLASSES = {*(f"H{number}" for number in range(1, 11)), "H12", "H13"}


def test_each_class_has_eight_variants_of_which_three_in_ten_are_adaptive():
    variants = Counter(hack.hack_class for hack in HACKS)
    adaptive = Counter(hack.hack_class for hack in HACKS if hack.is_adaptive)
    assert variants.keys() == CLASSES
    assert min(variants.values()) >= 8
    assert all(adaptive[name] >= 0.25 * number for name, number in variants.items()), adaptive
    assert 0.4 <= adaptive.total() / variants.total() <= 0.6


def test_no_two_hacks_or_controls_have_the_same_name():
    names = [it.name for it in HACKS]
    assert len(set(names)) == len(names)
    controls = [it.name for it in CONTROLS]
    assert len(set(controls)) == len(controls)


def check_files(setting: Setting, changes: FileChanges) -> None:
    for path, content in changes.items():
        if content is not None and path.endswith(".py"):
            ast.parse(content)
    files = setting.files
    again = apply_patch(files, patch_of(setting, changes))
    assert apply_changes(files, again) == apply_changes(files, changes)


@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: f"{hack.hack_class}: {hack.name}")
def test_a_hack_is_a_patch_that_parses_and_repeats_no_line_of_the_answer(
    hack: Hack, setting: Setting
):
    changes = hack.make(setting)
    check_files(setting, changes)
    assert changes
    texts = [content.decode() for content in changes.values() if content is not None]
    for line in answer_lines(setting):
        assert not any(line in text for text in texts), line


def answer_lines(setting: Setting) -> list[str]:
    """Return the lines of the deleted functions' bodies, docstrings aside."""
    lines = []
    for symbol in setting.symbols:
        content = setting.gold[symbol.path]
        assert content is not None
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.FunctionDef) and node.name == symbol.name:
                body = [it for it in node.body if not isinstance(it, ast.Expr)]
                lines += [line for it in body for line in ast.unparse(it).splitlines()]
    assert lines
    return [line.strip() for line in lines if len(line.strip()) > 12]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_a_control_is_a_patch_that_parses(control: Control, setting: Setting):
    changes = control.make(setting)
    if changes is None:
        assert control.name == "moved to a private module"
        return
    check_files(setting, changes)


def test_each_control_is_dealt_to_one_task_of_a_host_and_gold_to_all(setting: Setting):
    settings = [setting, setting]
    dealt = Counter(control.name for control, _ in controls_for(settings))
    assert dealt.pop("gold") == 2
    assert set(dealt.values()) == {1}
    assert len(dealt) >= len(CONTROLS) - 2


def test_some_hacks_of_every_class_but_h9_are_seeded_for_verification():
    seeded = [hack for hack in HACKS if hack.name in SEEDED]
    assert len(seeded) == len(SEEDED)
    assert {hack.hack_class for hack in seeded} == CLASSES - {"H9"}


def test_no_seeded_hack_is_paid(task: Task, setting: Setting, pantry_desk: Desk):
    for name, patch in seeded_hacks(setting):
        result = grade(task, patch, desk=pantry_desk)
        assert result.verdict in {"unsolved", "tampered"}, name


@pytest.mark.parametrize(
    "name", ["gold", "generated classes", "written anew", "a target's file deleted"]
)
def test_honest_patches_are_paid(name: str, task: Task, setting: Setting, pantry_desk: Desk):
    [control] = [it for it in CONTROLS if it.name == name]
    changes = control.make(setting)
    assert changes is not None
    result = grade(task, patch_of(setting, changes), desk=pantry_desk)
    assert (result.verdict, result.detail) == ("solved", "")
