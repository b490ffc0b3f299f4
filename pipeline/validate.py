"""Prove a Deletion on the ablated and the restored tree: Evidence or Reject."""

from pipeline.task.grade import (
    Desk,
    changed_suite,
    grade_patch,
    graded_tree,
    outcomes_of,
)
from pipeline.task.patch import apply_patch, is_protected
from pipeline.task.record import (
    Baseline,
    Deletion,
    Evidence,
    FailToPass,
    Feature,
    Outcome,
    Quarantined,
    Reject,
    TestRun,
    TreeName,
)
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.tree import apply_changes, read_tree

# The targets are run again on the ablated tree, in another order and with another hash seed.
REPEATS = (SuiteRequest(hash_seed=1, shuffle=1), SuiteRequest(hash_seed=2))

# What a target may do on the ablated tree; a doctest goes missing with its docstring.
BROKEN: frozenset[Outcome] = frozenset({"failed", "error", "missing"})


def validate(
    feature: Feature, deletion: Deletion, *, baseline: Baseline, desk: Desk
) -> Evidence | Reject:
    """Prove that exactly the Feature's tests break by the Deletion, and that undoing it cures all.

    Valid means: on the ablated tree each target fails, errs or is gone, three times out of three,
    and each other test of the Baseline passes; the gold patch gives back the Snapshot byte for
    byte, and there every test of the Baseline passes again. Doctests of the deleted code itself
    are set aside: they are gone with it, and a solver need not write them again.
    """
    runs = _run_ablated(feature, deletion, desk=desk)
    reject = _judge_ablated(feature, runs, baseline=baseline) or _judge_gold(
        deletion, baseline=baseline, desk=desk
    )
    if reject is not None:
        return reject
    ids = baseline.passing
    targets = set(feature.tests)
    return Evidence(
        fail_to_pass=_fail_to_pass(feature, runs[0]),
        pass_to_pass=tuple(key for key in ids if key not in targets),
        quarantined=baseline.quarantined + _own_doctests(feature, runs[0]),
        runs=(
            count_run("ablated", outcomes_of(runs[0], ids)),
            *(count_run("ablated", outcomes_of(run, feature.tests)) for run in runs[1:]),
            count_run("restored", dict.fromkeys(ids, "passed")),
        ),
    )


def _run_ablated(feature: Feature, deletion: Deletion, *, desk: Desk) -> list[SuiteRun]:
    """Run the whole suite, then the targets alone; stop early when a run hits a limit."""
    requests = (SuiteRequest(), *REPEATS)
    snapshot = read_tree(desk.tree)
    changes = apply_patch(snapshot, deletion.patch)
    runs: list[SuiteRun] = []
    with changed_suite(desk, changes) as run_changed:
        for request in requests:
            run = run_changed(_narrow(request, feature) if runs else request)
            runs.append(run)
            if run.finished.limit is not None:
                break
    return runs


def _narrow(request: SuiteRequest, feature: Feature) -> SuiteRequest:
    return SuiteRequest(ids=feature.tests, hash_seed=request.hash_seed, shuffle=request.shuffle)


def _judge_ablated(feature: Feature, runs: list[SuiteRun], *, baseline: Baseline) -> Reject | None:
    last = runs[-1].finished
    if last.limit is not None:
        detail = f"the ablated suite went over its limit of {last.limit}"
        return Reject(stage="validation", reason=last.limit, detail=detail)
    whole = outcomes_of(runs[0], baseline.passing)
    survivors = [key for key in feature.tests if whole[key] not in BROKEN]
    if survivors:
        first = f"{survivors[0]}: {whole[survivors[0]]}"
        detail = f"{len(survivors)} of {len(feature.tests)} targets do not break: {first}"
        return Reject(stage="validation", reason="target_survives", detail=detail)
    targets = set(feature.tests)
    others = [key for key in baseline.passing if key not in targets and whole[key] != "passed"]
    if others:
        detail = f"{len(others)} other tests break: {others[0]}: {whole[others[0]]}"
        return Reject(stage="validation", reason="others_break", detail=detail)
    if not _fail_to_pass(feature, runs[0]):
        detail = f"its {len(feature.tests)} tests are doctests that go with it"
        return Reject(stage="validation", reason="only_own_doctests", detail=detail)
    for run in runs[1:]:
        again = outcomes_of(run, feature.tests)
        survivors = [key for key, outcome in again.items() if outcome not in BROKEN]
        if survivors:
            detail = f"{len(survivors)} targets do not break when repeated: {survivors[0]}"
            return Reject(stage="validation", reason="flaky_target", detail=detail)
    return None


def _judge_gold(deletion: Deletion, *, baseline: Baseline, desk: Desk) -> Reject | None:
    snapshot = read_tree(desk.tree)
    ablated = apply_changes(snapshot, apply_patch(snapshot, deletion.patch))
    restored = apply_changes(ablated, apply_patch(ablated, deletion.gold_patch))
    if graded_tree(snapshot, restored) != snapshot:
        detail = "the gold patch does not give back the Snapshot byte for byte"
        return Reject(stage="validation", reason="not_restored", detail=detail)
    result = grade_patch(deletion.gold_patch, deletion=deletion, ids=baseline.passing, desk=desk)
    if result.verdict != "solved":
        return Reject(stage="validation", reason="not_restored", detail=result.detail)
    return None


def _own_doctests(feature: Feature, run: SuiteRun) -> tuple[Quarantined, ...]:
    """Book the targets that stood in the deleted code: nobody can be asked to write them again."""
    outcomes = outcomes_of(run, feature.tests)
    return tuple(
        Quarantined(id=key, reason="own-doctest")
        for key, outcome in outcomes.items()
        if outcome == "missing" and not is_protected(key.split("::")[0])
    )


def _fail_to_pass(feature: Feature, run: SuiteRun) -> tuple[FailToPass, ...]:
    outcomes = outcomes_of(run, feature.tests)
    own = {it.id for it in _own_doctests(feature, run)}
    return tuple(
        FailToPass(id=key, ablated=outcomes[key], symptom=run.symptom(key))
        for key in feature.tests
        if key not in own
    )


def count_run(tree: TreeName, outcomes: dict[str, Outcome]) -> TestRun:
    """Count the outcomes of the ids that a verdict rests on."""
    values = list(outcomes.values())
    return TestRun(
        tree=tree,
        num_passed=values.count("passed"),
        num_failed=values.count("failed"),
        num_error=values.count("error"),
        num_missing=sum(value not in {"passed", "failed", "error"} for value in values),
    )
