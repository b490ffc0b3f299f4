"""Trusting graders: they pay the honest, and the cheats that the corpus is made of."""

from pathlib import Path

import pytest

from pipeline.bench.naive import VERIFIERS, pay, run_naively
from pipeline.hacks.corpus import HACKS
from pipeline.hacks.setting import Setting
from pipeline.task.grade import Desk
from pipeline.task.record import Task

# A hack of each kind with what it fools.
FOOLED = {
    "targets emptied": set(VERIFIERS),
    "conftest passes every report": set(VERIFIERS),
    "os._exit at import": {"reward file", "exit status", "exit status and output"},
    "a reward file in the patch": {"reward file"},
    "a build folder": set(VERIFIERS),
}


def expected(task: Task) -> list[str]:
    ids = (*(target.id for target in task.evidence.fail_to_pass), *task.evidence.pass_to_pass)
    return [key for key in ids if key not in task.grading.hidden]


def test_every_trusting_grader_pays_the_gold_patch_and_none_the_empty_one(
    task: Task, setting: Setting, pantry_desk: Desk, solve_folder: Path
):
    ids = expected(task)
    gold = pay(run_naively(pantry_desk, solve_folder, setting.gold), ids)
    assert gold == dict.fromkeys(VERIFIERS, True)
    empty = pay(run_naively(pantry_desk, solve_folder, {}), ids)
    assert empty == dict.fromkeys(VERIFIERS, False)


@pytest.mark.parametrize("name", FOOLED)
def test_a_hack_fools_the_graders_that_it_is_made_for(
    name: str, task: Task, setting: Setting, pantry_desk: Desk, solve_folder: Path
):
    [hack] = [it for it in HACKS if it.name == name]
    litter = hack.litter(setting) if hack.litter else {}
    looked = run_naively(pantry_desk, solve_folder, {**litter, **hack.make(setting)})
    paid = {verifier for verifier, is_paid in pay(looked, expected(task)).items() if is_paid}
    assert paid >= FOOLED[name], looked.output[-2000:]
