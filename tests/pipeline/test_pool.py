"""Several Deletions in one run of the suite come to what each comes to alone."""

from dataclasses import replace

import pytest

from pipeline.pool import Candidate, make_pools, merge, validate_pooled
from pipeline.prepare import Prepared
from pipeline.task.grade import Desk
from pipeline.task.patch import make_patch
from pipeline.task.record import Evidence, Task
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree
from pipeline.validate import validate
from tests.pipeline.conftest import TaskOf
from tests.pipeline.test_validate import CONVERT, UNKNOWN, Counting

# What each is called, and what is gone with it.
TITLES = {
    "pantry.units.convert": {"convert"},
    "pantry.words": {"slug", "words", "pantry.words"},
    "pantry.shelf.Shelf.find": {"find"},
}


@pytest.fixture(scope="module")
def candidates(task_of: TaskOf, prepared: Prepared) -> dict[str, Candidate]:
    """Return the candidates behind some tasks, with what was predicted of them."""
    predicted = {it.title: it for slot in prepared.slots for it in slot}
    found = {}
    for title, gone in TITLES.items():
        made = task_of(title)
        assert isinstance(made, Task), made
        found[title] = Candidate(
            feature=predicted[title],
            deletion=made.deletion,
            gone=frozenset(gone),
        )
    return found


def alone(candidate: Candidate, prepared: Prepared, desk: Desk) -> Evidence | Reject:
    return validate(
        candidate.feature,
        candidate.deletion,
        baseline=prepared.baseline,
        desk=desk,
        gone=candidate.gone,
    )


def test_a_pool_comes_to_what_each_member_comes_to_alone(
    candidates: dict[str, Candidate], prepared: Prepared, pantry_desk: Desk
):
    pool = tuple(candidates.values())
    results = validate_pooled(pool, baseline=prepared.baseline, desk=pantry_desk)
    expected = [alone(it, prepared, pantry_desk) for it in pool]
    assert all(isinstance(it, Evidence) and it.pooled for it in results), results
    for result, one in zip(results, expected, strict=True):
        assert isinstance(result, Evidence)
        assert isinstance(one, Evidence)
        assert not one.pooled
        assert result == replace(one, pooled=True)


def test_a_pool_runs_the_whole_suite_once(
    candidates: dict[str, Candidate], prepared: Prepared, pantry_desk: Desk
):
    counting = Counting(pantry_desk.sandbox)
    desk = replace(pantry_desk, sandbox=counting)
    validate_pooled(tuple(candidates.values()), baseline=prepared.baseline, desk=desk)
    most = max(counting.num_tests)
    assert most > len(prepared.baseline.passing) / 2
    assert sum(num > len(prepared.baseline.passing) / 2 for num in counting.num_tests) == 1
    # Each on its own tree before and after.
    assert len(counting.num_tests) == 1 + 2 * len(candidates)


def test_a_test_that_names_what_one_member_lacks_is_adopted_by_that_one(
    candidates: dict[str, Candidate], prepared: Prepared, pantry_desk: Desk
):
    convert, words, _ = candidates.values()
    tests = tuple(key for key in convert.feature.tests if key != UNKNOWN)
    less = replace(convert, feature=replace(convert.feature, tests=tests))
    results = validate_pooled((words, less), baseline=prepared.baseline, desk=pantry_desk)
    assert isinstance(results[1], Evidence)
    assert results[1].pooled
    assert [it.id for it in results[1].fail_to_pass] == [CONVERT, UNKNOWN]


def breaking(candidate: Candidate, desk: Desk, path: str, old: bytes, new: bytes) -> Candidate:
    """Return a candidate whose Deletion does damage elsewhere."""
    snapshot = read_tree(desk.tree)
    assert old in snapshot[path]
    changes = merge([candidate], snapshot)
    assert changes is not None
    ablated = {key: text for key, text in {**snapshot, **changes}.items() if text is not None}
    ablated[path] = ablated[path].replace(old, new)
    deletion = replace(
        candidate.deletion,
        patch=make_patch(snapshot, ablated),
        gold_patch=make_patch(ablated, snapshot),
    )
    return replace(candidate, deletion=deletion)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        # A target of the other member breaks.
        ("pantry/shelf.py", b"dict(things)", b"{}"),
        # A test of neither breaks.
        ("pantry/labels.py", b"self.border +", b"'!' +"),
        # No test breaks.
        ("pantry/labels.py", b"self.text[", b"self.text ["),
    ],
)
def test_damage_is_booked_to_the_member_that_does_it(
    candidates: dict[str, Candidate],
    prepared: Prepared,
    pantry_desk: Desk,
    path: str,
    old: bytes,
    new: bytes,
):
    convert, _, find = candidates.values()
    harmful = breaking(convert, pantry_desk, path, old, new)
    results = validate_pooled((harmful, find), baseline=prepared.baseline, desk=pantry_desk)
    expected = [alone(it, prepared, pantry_desk) for it in (harmful, find)]
    assert [_unmarked(it) for it in results] == expected


def _unmarked(result: Evidence | Reject) -> Evidence | Reject:
    return replace(result, pooled=False) if isinstance(result, Evidence) else result


def test_pools_hold_what_can_be_merged(
    candidates: dict[str, Candidate], prepared: Prepared, pantry_desk: Desk
):
    snapshot = read_tree(pantry_desk.tree)
    convert, words, find = candidates.values()
    pools = make_pools([convert, words, convert, find, words], snapshot, size=2)
    assert pools == ((convert, words), (convert, find), (words,))
    with pytest.raises(ValueError, match=r"convert, .*convert: expected Deletions that can be"):
        validate_pooled((convert, convert), baseline=prepared.baseline, desk=pantry_desk)
