"""Prove a Deletion on the ablated tree, and a Task by its gold patch and its stub."""

from collections.abc import Mapping
from functools import partial

from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.grade import Desk, changed_suite, grade, outcomes_of
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
    Task,
    TestRun,
    TreeName,
)
from pipeline.task.solve_tree import ablated_tree, function_of, restore_tests, solve_tree
from pipeline.task.stub import stub_patch
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.tree import apply_changes, changes_between, read_tree

# The targets are run again on the ablated tree, in another order and with another hash seed.
REPEATS = (SuiteRequest(hash_seed=1, shuffle=1), SuiteRequest(hash_seed=2))

# What a target may do on the ablated tree; a doctest goes missing with its docstring.
BROKEN: frozenset[Outcome] = frozenset({"failed", "error", "missing"})


def validate(
    feature: Feature, deletion: Deletion, *, baseline: Baseline, desk: Desk
) -> Evidence | Reject:
    """Prove that exactly the Feature's tests break by the Deletion.

    Valid means: on the ablated tree each target fails, errs or is gone, three times out of three,
    and each other test of the Baseline passes; the gold patch gives back the Snapshot byte for
    byte, of which the Baseline is known. Doctests of the deleted code itself are set aside: they
    are gone with it, and a solver need not write them again.
    """
    runs = _run_ablated(feature, deletion, desk=desk)
    reject = _judge_ablated(feature, runs, baseline=baseline) or _judge_bytes(deletion, desk=desk)
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


def prove_task(task: Task, *, desk: Desk) -> Reject | None:
    """Return why a Task is none, although its Deletion is proven: None when it is one.

    A part of what decides is not shown to a solver. A Task is solved by its gold patch, by the
    grader that will judge every other one. It is not by a stub. What a solver is shown fails
    without a solution and passes with the gold patch.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    snapshot = read_tree(desk.tree)
    if not (task.grading.hidden or task.grading.shortened):
        detail = "its tests can be neither hidden nor shortened: a table of what they ask solves it"
        return Reject(stage="validation", reason="nothing_to_hide", detail=detail)
    shown = solve_tree(task, snapshot)
    visible = tuple(it.id for it in task.evidence.fail_to_pass if it.id not in task.grading.hidden)
    passing = partial(_passing, snapshot=snapshot, task=task, desk=desk)
    survivors = passing(visible, shown)
    if survivors:
        detail = f"{len(survivors)} targets pass on the solve tree, first: {survivors[0]}"
        return Reject(stage="validation", reason="target_survives", detail=detail)
    solved = apply_changes(shown, apply_patch(shown, task.deletion.gold_patch))
    lost = set(visible).difference(passing(visible, solved))
    if lost:
        detail = f"{len(lost)} targets that are shown do not pass with the gold patch: {min(lost)}"
        return Reject(stage="validation", reason="not_solvable", detail=detail)
    stubbed = apply_changes(shown, apply_patch(shown, stub_patch(task, snapshot)))
    targets = tuple(it.id for it in task.evidence.fail_to_pass)
    if len(passing(targets, restore_tests(snapshot, stubbed))) == len(targets):
        detail = f"a stub that raises NotImplementedError passes all {len(targets)} targets"
        return Reject(stage="validation", reason="stub_solves", detail=detail)
    return _judge_gold(task, desk=desk)


def _passing(
    ids: tuple[str, ...],
    tree: Mapping[str, bytes],
    *,
    snapshot: Mapping[str, bytes],
    task: Task,
    desk: Desk,
) -> list[str]:
    """Return the ids that pass on a tree, with the plugins of a grade."""
    with changed_suite(desk, changes_between(snapshot, tree)) as run_changed:
        run = run_changed(SuiteRequest(ids=ids, plugins=task.grading.plugins))
    return [key for key, outcome in outcomes_of(run, ids).items() if outcome == "passed"]


def _judge_gold(task: Task, *, desk: Desk) -> Reject | None:
    result = grade(task, task.deletion.gold_patch, desk=desk)
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    if result.verdict == "solved":
        return None
    return Reject(stage="validation", reason="not_restored", detail=result.detail)


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
    return _judge_again(feature, runs[1:]) or judge_places(_fail_to_pass(feature, runs[0]))


def _judge_again(feature: Feature, runs: list[SuiteRun]) -> Reject | None:
    for run in runs:
        again = outcomes_of(run, feature.tests)
        survivors = [key for key, outcome in again.items() if outcome not in BROKEN]
        if survivors:
            detail = f"{len(survivors)} targets do not break when repeated: {survivors[0]}"
            return Reject(stage="validation", reason="flaky_target", detail=detail)
    return None


def judge_places(targets: tuple[FailToPass, ...]) -> Reject | None:
    """Refuse targets that a solver can change: tests in files that do not look like tests."""
    files = [target.id.split("::")[0] for target in targets]
    within = [it.id for it, file in zip(targets, files, strict=True) if not is_protected(file)]
    functions = [key for key in within if _is_function(key)]
    if functions or len(within) == len(targets):
        detail = f"a solver's patch may change {(functions or within)[0]}"
        return Reject(stage="validation", reason="unprotected_target", detail=detail)
    return None


def _is_function(key: str) -> bool:
    """Tell the id of a test function from that of a doctest."""
    return all(name.isidentifier() for name in function_of(key).split("::")[1:])


def _judge_bytes(deletion: Deletion, *, desk: Desk) -> Reject | None:
    snapshot = read_tree(desk.tree)
    ablated = ablated_tree(deletion, snapshot)
    restored = apply_changes(ablated, apply_patch(ablated, deletion.gold_patch))
    if restore_tests(snapshot, restored) == snapshot:
        return None
    detail = "the gold patch does not give back the Snapshot byte for byte"
    return Reject(stage="validation", reason="not_restored", detail=detail)


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
