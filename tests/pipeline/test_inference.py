"""What the full protocol has found tells which weaker verifiers need not be tried."""

from dataclasses import replace

import pytest

from pipeline.bench.inference import is_stopped
from pipeline.task.grade import ALL, Defences, Desk, Grade, grade
from pipeline.task.patch import make_patch
from pipeline.task.record import Task
from pipeline.task.stub import stub_patch
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import TaskOf

# Of the defences, those that count what the tests of a stub say.
TELLING = {"expected_ids", "sentinels", "clones"}
NOTHING = Defences(
    screen=True,
    restore_tests=True,
    pinned_plugins=True,
    expected_ids=False,
    nonce=False,
    two_channels=False,
    integrity=False,
    audit=False,
    sentinels=False,
    clones=False,
    hidden=True,
)


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


@pytest.fixture(scope="module")
def stubbed(task: Task, pantry_desk: Desk) -> Grade:
    return grade(task, stub_patch(task, read_tree(pantry_desk.tree)), desk=pantry_desk)


@pytest.mark.parametrize("name", ["expected_ids", "nonce", "two_channels", "integrity", "audit"])
def test_a_stub_is_stopped_by_what_its_tests_say_and_by_nothing_else(
    stubbed: Grade, task: Task, name: str
):
    alone = replace(NOTHING, **{name: True})
    assert is_stopped(stubbed, task, alone) == (name in TELLING)


def test_what_is_refused_is_refused_until_the_screen_is_down(task: Task, pantry_desk: Desk):
    patch = make_patch({}, {"sitecustomize.py": b"x = 1\n"})
    refused = grade(task, patch, desk=pantry_desk)
    assert refused.verdict == "tampered"
    assert is_stopped(refused, task, NOTHING)
    assert not is_stopped(refused, task, replace(ALL, screen=False))
