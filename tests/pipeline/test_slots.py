"""Several slots of a Repo that are filled at once come to what each comes to alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.desk import Folders
from pipeline.pool import POOL_SIZE, EvidenceMode
from pipeline.prepare import Prepared, prepare_repo
from pipeline.sandbox.protocol import Finished, Job, Sandbox, SandboxBrokenError
from pipeline.selection import Choice
from pipeline.slots import deal_units, fill_slots
from pipeline.task.record import Feature, Task
from tests.pipeline.conftest import MakeTree, RepoFor, TaskOf
from tests.pipeline.test_selection import feature
from tests.pipeline.test_validate import Counting

# What two functions are each other's stand-in for, and tests that do not care.
PAIR = {
    "pair/__init__.py": '''\
def left(text):
    """Return a text with an arrow to the left."""
    arrow = "<-"
    joined = f"{arrow} {text}"
    return joined


def right(text):
    """Return a text with an arrow to the right."""
    arrow = "->"
    joined = f"{text} {arrow}"
    return joined
''',
    "tests/test_pair.py": """\
import pytest

import pair


def test_left():
    assert pair.left("a") == "<- a"
    assert pair.left("b") == "<- b"


def test_right():
    assert pair.right("a") == "a ->"
    assert pair.right("b") == "b ->"


def test_either():
    assert hasattr(pair, "left") or hasattr(pair, "right")


@pytest.mark.parametrize("number", range(5))
def test_number(number):
    assert number < 5
""",
}


def slot_of(prepared: Prepared, *titles: str) -> tuple[Feature, ...]:
    found = {it.title: it for slot in prepared.slots for it in slot}
    return tuple(found[title] for title in titles)


def unmarked(task: Task) -> Task:
    """Return the same without the mark of pooled Evidence."""
    return replace(task, evidence=replace(task.evidence, pooled=False))


def test_a_slot_makes_one_task_and_says_what_became_of_the_others(
    prepared: Prepared, folders: Folders, sandbox: Sandbox, tmp_path: Path
):
    own = replace(folders, scratch=tmp_path / "work")
    slot = slot_of(prepared, "pantry.odd.howl", "pantry.shelf.Shelf.find", "pantry.labels")
    (made,) = fill_slots(prepared, [slot], folders=own, sandbox=sandbox, seed=0)
    assert [task.feature.title for task in made.tasks] == ["pantry.shelf.Shelf.find"]
    assert [(it.subject, it.reject.reason) for it in made.left_out] == [
        ("pantry.odd.howl", "used_at_import"),
        ("pantry.labels", "not_tried"),
    ]
    assert list(own.scratch.iterdir()) == []


def test_slots_filled_together_make_the_tasks_that_each_makes_alone(
    prepared: Prepared, folders: Folders, sandbox: Sandbox, task_of: TaskOf
):
    slots = [
        slot_of(prepared, "pantry.odd.howl", "pantry.shelf.Shelf.find", "pantry.labels"),
        slot_of(prepared, "pantry.odd.sigh", "pantry.words"),
        slot_of(prepared, "pantry.units.convert"),
        slot_of(prepared, "pantry.odd.howl"),
    ]
    made = fill_slots(prepared, slots, folders=folders, sandbox=sandbox, seed=0, mode="pooled")
    titles = ["pantry.shelf.Shelf.find", "pantry.words", "pantry.units.convert"]
    assert [len(it.tasks) for it in made] == [1, 1, 1, 0]
    tasks = [task for it in made for task in it.tasks]
    assert list(map(unmarked, tasks)) == list(map(task_of, titles))
    assert [[it.reject.reason for it in slot.left_out] for slot in made] == [
        ["used_at_import", "not_tried"],
        ["target_survives"],
        [],
        ["used_at_import"],
    ]
    # The first round judges three at once, the second the one that the first has refused.
    assert [it.evidence.pooled for it in tasks] == [True, False, True]


def test_deletions_that_disturb_each_other_have_evidence_of_their_own(
    make_tree: MakeTree, repo_for: RepoFor, folders: Folders, sandbox: Sandbox
):
    repo = repo_for(make_tree(PAIR), name="pair")
    prepared = prepare_repo(repo, folders=folders, sandbox=sandbox, choice=Choice())
    assert isinstance(prepared, Prepared), prepared
    assert deal_units(prepared.slots, mode="pooled") == ((0, 1),)
    made = {
        mode: fill_slots(
            prepared, prepared.slots, folders=folders, sandbox=sandbox, seed=0, mode=mode
        )
        for mode in get_args(EvidenceMode)
    }
    tasks = [task for it in made["pooled"] for task in it.tasks]
    assert {task.feature.title for task in tasks} == {"pair.left", "pair.right"}
    assert made["pooled"] == made["individual"]


class Failing:
    """A sandbox that breaks at the first run of many tests."""

    def __init__(self, inner: Sandbox, *, num_tests: int) -> None:
        self.name = inner.name
        self._counting = Counting(inner)
        self._num_tests = num_tests

    def run(self, job: Job) -> Finished:
        """Run a job; lose what it came to when it was a large one."""
        finished = self._counting.run(job)
        if self._counting.num_tests[-1] >= self._num_tests:
            raise SandboxBrokenError("no memory to fork")
        return finished

    def stop(self) -> None:
        """Leave the stopping to whoever opened the sandbox."""

    def adopt(self, folder: object) -> None:
        """Make a folder usable by jobs."""
        self._counting.adopt(folder)


def test_a_machine_that_breaks_in_the_shared_run_decides_nothing(
    prepared: Prepared, folders: Folders, sandbox: Sandbox, tmp_path: Path
):
    own = replace(folders, scratch=tmp_path / "work")
    slots = [slot_of(prepared, "pantry.words"), slot_of(prepared, "pantry.units.convert")]
    failing = Failing(sandbox, num_tests=len(prepared.baseline.passing) // 2)
    with pytest.raises(SandboxBrokenError, match="no memory"):
        fill_slots(prepared, slots, folders=own, sandbox=failing, seed=0, mode="pooled")
    assert list(own.scratch.iterdir()) == []


def slots_with(tests: Sequence[frozenset[int]]) -> list[tuple[Feature, ...]]:
    """Return slots of one candidate each, which have these tests."""
    names = [tuple(f"test_{it}" for it in sorted(numbers)) for numbers in tests]
    return [(replace(feature(f"f{at}"), tests=ids),) for at, ids in enumerate(names)]


@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1), max_size=20))
def test_slots_with_a_test_in_common_are_never_filled_together(tests: list[frozenset[int]]):
    units = deal_units(slots_with(tests), mode="pooled")
    assert sorted(number for unit in units for number in unit) == list(range(len(tests)))
    for unit in units:
        assert 1 <= len(unit) <= POOL_SIZE
        assert len(frozenset().union(*(tests[it] for it in unit))) == sum(
            len(tests[it]) for it in unit
        )


def test_a_slot_has_a_unit_to_itself_unless_evidence_is_pooled():
    slots = slots_with([frozenset({number}) for number in range(6)])
    assert deal_units(slots, mode="individual") == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert deal_units(slots, mode="pooled") == ((0, 1, 2, 3), (4, 5))
