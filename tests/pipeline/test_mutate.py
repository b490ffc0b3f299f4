"""How many small mistakes in the deleted code its tests notice."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from pipeline.mutate import NUM_MUTANTS, choose_trials, measure_strength, removed_lines
from pipeline.prepare import Prepared
from pipeline.task.patch import make_patch
from pipeline.task.record import Deletion, Evidence, FailToPass, Task
from pipeline.task.reject import Reject
from pipeline.task.schema import from_row, to_row
from tests.pipeline.conftest import DeskFor, MakeTree, TaskOf
from tests.trainer.test_tasks import blank

MODULE = """\
def kept(a):
    return a + 1


def scale(a, b):
    total = a * 2
    if a == 3 and b:
        total = b
    return total


def drain(queue):
    for item in queue:
        if item != 0:
            queue.append(item - 1)
    return len(queue)
"""
TESTS = """\
import lib

def test_quiet():
    lib.scale(1, 2)

def test_values():
    assert lib.scale(1, 3) == 2
    assert lib.scale(3, 5) == 5

def test_drain():
    assert lib.drain([3]) == 4
"""
FILES = {"lib.py": MODULE, "tests/test_lib.py": TESTS}
SNAPSHOT = {path: text.encode() for path, text in FILES.items()}
SCALE, DRAIN = MODULE.index("def scale"), MODULE.index("def drain")
QUIET, VALUES, DRAINED = (
    f"tests/test_lib.py::test_{name}" for name in ("quiet", "values", "drain")
)


def deletion_of(start: int, end: int | None = None) -> Deletion:
    """Return the Deletion of a part of the module, and of a test's line that must not matter."""
    text = MODULE[:start] + (MODULE[end:] if end else "")
    tests = TESTS.replace("    assert lib.scale(1, 3) == 2\n", "")
    ablated = {"lib.py": text.encode(), "tests/test_lib.py": tests.encode()}
    return replace(from_row(Deletion, to_row(blank(Deletion))), patch=make_patch(SNAPSHOT, ablated))


def evidence_of(*ids: str) -> Evidence:
    targets = tuple(FailToPass(id=key, ablated="failed", symptom="") for key in ids)
    return Evidence(fail_to_pass=targets, pass_to_pass=(), quarantined=(), runs=())


def measured(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared, *ids: str, deletion: Deletion
) -> Evidence | Reject:
    desk = desk_for(make_tree(FILES))
    evidence = evidence_of(*ids)
    return measure_strength(evidence, deletion, baseline=prepared.baseline, desk=desk)


def test_the_lines_that_go_are_those_of_the_code():
    found = removed_lines(deletion_of(SCALE, DRAIN).patch)
    assert list(found) == ["lib.py"]
    code = {number for number in found["lib.py"] if MODULE.splitlines()[number - 1]}
    assert code == {5, 6, 7, 8, 9}


def test_tests_that_look_at_what_comes_back_notice_mistakes(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared
):
    scale = deletion_of(SCALE, DRAIN)
    result = measured(make_tree, desk_for, prepared, QUIET, VALUES, deletion=scale)
    assert result == replace(evidence_of(QUIET, VALUES), num_mutants=NUM_MUTANTS, num_killed=4)


def test_tests_that_notice_nothing_are_rejected(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared
):
    scale = deletion_of(SCALE, DRAIN)
    result = measured(make_tree, desk_for, prepared, QUIET, deletion=scale)
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("validation", "weak_tests")
    assert result.detail.startswith("none of 4 small mistakes in it is noticed: lib.py:")


def test_a_mistake_after_which_the_code_never_ends_is_noticed(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared
):
    snapshot = {"lib.py": MODULE.encode()}
    endless = MODULE.replace("item - 1", "item - 2")
    patch = make_patch(snapshot, {"lib.py": MODULE.replace("queue.append(item - 1)", "").encode()})
    deletion = replace(deletion_of(DRAIN), patch=patch)
    trials = choose_trials(deletion, snapshot, (DRAINED,), tests_at=None, max_tests=9)
    assert endless.encode() in [it.content for it in trials]
    result = measured(make_tree, desk_for, prepared, DRAINED, deletion=deletion)
    assert isinstance(result, Evidence)
    assert result.num_killed == result.num_mutants == len(trials)


def test_the_same_deletion_has_the_same_mutants_of_many_kinds():
    deletion = deletion_of(SCALE)
    trials = choose_trials(deletion, SNAPSHOT, (QUIET,), tests_at=None, max_tests=9)
    assert trials == choose_trials(deletion, SNAPSHOT, (QUIET,), tests_at=None, max_tests=9)
    assert len({it.mutant.mistake for it in trials}) == len(trials) == NUM_MUTANTS
    assert len({it.mutant.line for it in trials}) == NUM_MUTANTS
    assert all(it.content != SNAPSHOT["lib.py"] for it in trials)


def test_a_mutant_is_shown_to_tests_that_run_its_line_and_to_no_more_than_asked_for():
    def tests_at(path: str, line: int) -> Collection[str]:
        assert path == "lib.py"
        return {6: (QUIET, VALUES), 14: (DRAINED, "tests/test_other.py::test_b")}.get(line, ())

    targets = (QUIET, VALUES, DRAINED)
    trials = choose_trials(deletion_of(SCALE), SNAPSHOT, targets, tests_at=tests_at, max_tests=9)
    assert {(it.mutant.line, frozenset(it.tests)) for it in trials} == {
        (6, frozenset({QUIET, VALUES})),
        (14, frozenset({DRAINED})),
    }
    trials = choose_trials(deletion_of(SCALE), SNAPSHOT, targets, tests_at=None, max_tests=2)
    assert all(len(it.tests) == 2 for it in trials)


def test_code_without_anything_to_mistake_has_no_mutants(
    make_tree: MakeTree, desk_for: DeskFor, prepared: Prepared
):
    patch = make_patch({"lib.py": b"SIZE = 1\n"}, {"lib.py": b""})
    deletion = replace(deletion_of(DRAIN), patch=patch)
    result = measured(make_tree, desk_for, prepared, QUIET, deletion=deletion)
    assert result == evidence_of(QUIET)


@pytest.mark.parametrize("title", ["pantry.units.convert", "pantry.labels"])
def test_a_task_says_how_many_of_its_mutants_are_killed(task_of: TaskOf, title: str):
    made = task_of(title)
    assert isinstance(made, Task), made
    assert 0 < made.evidence.num_killed <= made.evidence.num_mutants <= NUM_MUTANTS
