"""Prove a Deletion on the ablated tree: run what decides, in the order that costs least."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from pipeline.observe import (
    NAMING,
    Case,
    Outcomes,
    conclude,
    find_candidates,
    first_unexplained,
    refuse_survivors,
    was_ended_early,
)
from pipeline.task.grade import Desk, changed_suite, outcomes_of
from pipeline.task.patch import apply_patch
from pipeline.task.record import Baseline, Deletion, Evidence, Feature
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import ablated_tree, restore_tests
from pipeline.task.suite import WHOLE, EarlyStop, SuiteRequest, SuiteRun
from pipeline.task.tree import apply_changes, read_tree

# `fast`: few runs, each of as little as will do. `plain`: the whole suite each time, to compare.
Method = Literal["fast", "plain"]

# The targets are run again on the ablated tree, in another order and with another hash seed: with
# one other, as warm workers are of one seed each.
REPEATS = (SuiteRequest(hash_seed=1, shuffle=1), SuiteRequest(hash_seed=1))

RunChanged = Callable[[SuiteRequest], SuiteRun]


def validate(
    feature: Feature,
    deletion: Deletion,
    *,
    baseline: Baseline,
    desk: Desk,
    gone: frozenset[str],
    method: Method = "fast",
) -> Evidence | Reject:
    """Prove what breaks by a Deletion, and that the rest does not.

    Valid means: on the ablated tree each target fails, errs or is gone, three times out of three,
    and each other test of the Baseline passes; the gold patch gives back the Snapshot byte for
    byte, of which the Baseline is known, so no suite is run for that. Targets are what was
    observed: of the Feature's tests those that break, and others that break with an exception
    which names something gone. Doctests of the deleted code itself are set aside: they are gone
    with it, and a solver need not write them again.

    Args:
        feature: its tests are the prediction.
        deletion: what is to be proven.
        baseline: of the Snapshot.
        desk: where to run the suite.
        gone: names of deleted symbols and modules: last parts, and dotted modules.
        method: how; the Evidence is the same.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    reject = judge_bytes(deletion, desk=desk)
    if reject is not None:
        return reject
    case = Case(feature=feature, baseline=baseline, gone=gone)
    changes = apply_patch(read_tree(desk.tree), deletion.patch)
    with changed_suite(desk, changes) as run_changed:
        return METHODS[method](case, run_changed)


def judge_bytes(deletion: Deletion, *, desk: Desk) -> Reject | None:
    """Refuse a gold patch after which the tree is not the Snapshot's, tests restored."""
    snapshot = read_tree(desk.tree)
    ablated = ablated_tree(deletion, snapshot)
    restored = apply_changes(ablated, apply_patch(ablated, deletion.gold_patch))
    if restore_tests(snapshot, restored) == snapshot:
        return None
    detail = "the gold patch does not give back the Snapshot byte for byte"
    return Reject(stage="validation", reason="not_restored", detail=detail)


def _validate_fast(case: Case, run_changed: RunChanged) -> Evidence | Reject:
    """Run the predicted tests, then the whole suite, then once more what may be a target.

    Each run is refused as soon as it says enough; the whole suite ends with the first test that
    breaks and cannot be explained. It keeps its order: slow tests last would save more, but tests
    may depend on an order of modules that the Baseline has not seen.
    """
    tests = case.feature.tests
    first = run_changed(narrowed(REPEATS[0], tests))
    reject = refuse_limit(first) or refuse_survivors(tests, outcomes_of(first, tests))
    if reject is not None:
        return reject
    whole = _run_whole(case, run_changed)
    candidates = refuse_limit(whole) or find_candidates(case, whole)
    if isinstance(candidates, Reject):
        return candidates
    return repeat(case, candidates, run_changed=run_changed, first=first, whole=whole)


def repeat(
    case: Case,
    candidates: Sequence[str],
    *,
    run_changed: RunChanged,
    first: SuiteRun,
    whole: SuiteRun,
) -> Evidence | Reject:
    """Run again what has not been run three times yet: adopted tests twice, predicted ones once."""
    adopted = tuple(key for key in candidates if key not in set(case.feature.tests))
    again = run_changed(narrowed(REPEATS[0], adopted)) if adopted else None
    last = run_changed(narrowed(REPEATS[1], tuple(candidates)))
    for run in filter(None, (again, last)):
        reject = refuse_limit(run)
        if reject is not None:
            return reject
    seen: Outcomes = outcomes_of(first, case.feature.tests)
    if again is not None:
        seen = {**seen, **outcomes_of(again, adopted)}
    return conclude(case, candidates, whole, (seen, outcomes_of(last, candidates)))


def _run_whole(case: Case, run_changed: RunChanged) -> SuiteRun:
    predicted = set(case.feature.tests)
    others = tuple(key for key in case.baseline.passing if key not in predicted)
    run = run_changed(replace(WHOLE, stop=EarlyStop(must_pass=others, excused=NAMING)))
    # A plugin may have run the test again, which then passed.
    if was_ended_early(run) and run.finished.limit is None and not first_unexplained(case, run):
        return run_changed(WHOLE)
    return run


def _validate_plain(case: Case, run_changed: RunChanged) -> Evidence | Reject:
    """Run the whole suite three times, and look at it afterwards."""
    runs = [run_changed(request) for request in (WHOLE, *REPEATS)]
    for run in runs:
        reject = refuse_limit(run)
        if reject is not None:
            return reject
    candidates = find_candidates(case, runs[0])
    if isinstance(candidates, Reject):
        return candidates
    return conclude(case, candidates, runs[0], [outcomes_of(it, candidates) for it in runs[1:]])


def narrowed(request: SuiteRequest, ids: tuple[str, ...]) -> SuiteRequest:
    """Return the request for some ids alone."""
    return replace(request, ids=ids)


def refuse_limit(run: SuiteRun) -> Reject | None:
    """Refuse a Deletion without which the suite runs wild."""
    limit = run.finished.limit
    if limit is None:
        return None
    detail = f"the ablated suite went over its limit of {limit}"
    return Reject(stage="validation", reason=limit, detail=detail)


METHODS: dict[Method, Callable[[Case, RunChanged], Evidence | Reject]] = {
    "fast": _validate_fast,
    "plain": _validate_plain,
}
