"""Measure on the Snapshot what the grades of a Task may rest on: Grading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.task.canonical import content_id
from pipeline.task.changed import Desk, changed_suite
from pipeline.task.patch import is_protected
from pipeline.task.planting import Planted, plant
from pipeline.task.record import Baseline, FailToPass, Grading, Sentinel
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import (
    choose_hidden,
    choose_shortened,
    function_of,
    shorten_tests,
)
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.tree import changes_between, read_tree
from pipeline.task.twins import find_sentinels
from pipeline.task.verdict import (
    ALL,
    Expectation,
    Twin,
    is_failing,
    judge,
    outcomes_by_function,
)

# More need not be tried: a run draws a few.
MAX_SENTINELS = 12
MAX_CLONES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Twins that may be kept."""

    sentinels: tuple[Sentinel, ...]
    clones: tuple[str, ...]


def can_withhold(ids: Sequence[str], snapshot: Mapping[str, bytes]) -> bool:
    """Tell whether a part of some targets can be kept from a solver, whatever the draw."""
    return bool(
        choose_hidden(ids, snapshot, seed=0, task_id="")
        or choose_shortened(ids, snapshot, seed=0, task_id="")
    )


def measure_grading(
    targets: Sequence[FailToPass], *, baseline: Baseline, desk: Desk, seed: int, task_id: str
) -> Grading | Reject:
    """Choose hidden tests, and the twins that fail or pass on the Snapshot as they must.

    The run that tries the twins is a grade of the Snapshot, which is what a gold patch gives back:
    the targets run with them and are judged as those of any solver are.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    snapshot = read_tree(desk.tree)
    ids = tuple(target.id for target in targets)
    candidates = _candidates(ids, snapshot, draw=(seed, task_id))
    planted = plant(snapshot, sentinels=candidates.sentinels, clones=candidates.clones)
    run = _run(ids, planted, baseline, desk=desk)
    good = _good_twins(planted, run)
    reject = _judge(run, ids, good, baseline)
    if reject is not None:
        return reject
    withheld = _withhold(ids, snapshot, baseline, desk=desk, draw=(seed, task_id))
    return Grading(
        plugins=baseline.plugins,
        alarms=baseline.alarms,
        hidden=withheld.hidden,
        shortened=withheld.shortened,
        sentinels=tuple(twin.sentinel for twin in good if twin.sentinel is not None),
        clones=tuple(twin.test for twin in good if twin.sentinel is None)[:MAX_CLONES],
    )


def _good_twins(planted: Planted, run: SuiteRun) -> tuple[Twin, ...]:
    """Return the clones that pass and, of tests that have one, the twins that fail."""
    outcomes = outcomes_by_function(run)
    clones = {
        twin.test
        for twin in planted.twins
        if twin.sentinel is None and set(outcomes.get(twin.id, ())) == {"passed"}
    }
    return tuple(
        twin
        for twin in planted.twins
        # Where a faithful copy fails, a wrong one proves nothing.
        if twin.test in clones and (twin.sentinel is None or is_failing(outcomes.get(twin.id, ())))
    )


def _judge(
    run: SuiteRun, ids: tuple[str, ...], twins: tuple[Twin, ...], baseline: Baseline
) -> Reject | None:
    """Refuse targets that the grader does not take for solved on the Snapshot itself."""
    judgement = judge(
        run,
        Expectation(
            ids=ids,
            twins=twins,
            alarms=frozenset(baseline.alarms),
            quarantined=frozenset(it.id for it in baseline.quarantined),
            is_guarded=True,
            defences=ALL,
        ),
    )
    if judgement.verdict == "solved":
        return None
    return Reject(stage="validation", reason="not_restored", detail=judgement.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Withheld:
    """What a solver is not shown; see `Grading`."""

    hidden: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()


def _withhold(
    ids: Sequence[str],
    snapshot: Mapping[str, bytes],
    baseline: Baseline,
    *,
    desk: Desk,
    draw: tuple[int, str],
) -> _Withheld:
    """Choose whole test functions; where there is none, parts of some."""
    seed, task_id = draw
    hidden = choose_hidden(ids, snapshot, seed=seed, task_id=task_id)
    if hidden:
        return _Withheld(hidden=hidden)
    shortened = choose_shortened(ids, snapshot, seed=seed, task_id=task_id)
    if not shortened:
        return _Withheld()
    request = SuiteRequest(ids=shortened, plugins=baseline.plugins, collect_only=True)
    shown = shorten_tests(snapshot, shortened)
    with changed_suite(desk, changes_between(snapshot, shown)) as run_changed:
        collected = frozenset(run_changed(request).collected)
    mine = [key for key in ids if function_of(key) in shortened]
    # What is shown must be among the targets, under the same ids.
    if not collected or not collected.issubset(mine):
        return _Withheld()
    return _Withheld(hidden=tuple(key for key in mine if key not in collected), shortened=shortened)


def _candidates(
    ids: Sequence[str], snapshot: Mapping[str, bytes], *, draw: tuple[int, str]
) -> _Candidates:
    """Draw twins to try, by turns from each of the target functions."""
    names = dict.fromkeys(map(function_of, ids))
    functions = [name for name in names if _is_function(name, snapshot)]
    functions.sort(key=lambda name: content_id(*draw, name))
    paths = dict.fromkeys(name.partition("::")[0] for name in functions)
    sources = {path: snapshot[path].decode("utf-8", "replace") for path in paths}
    found = _enough(sources, functions)
    rank = {name: number for number, name in enumerate(functions)}
    sentinels = sorted(found, key=lambda it: (it.number, rank[it.test]))[:MAX_SENTINELS]
    clones = dict.fromkeys((*functions[:MAX_CLONES], *(it.test for it in sentinels)))
    return _Candidates(sentinels=tuple(sentinels), clones=tuple(clones))


def _enough(sources: Mapping[str, str], functions: Sequence[str]) -> list[Sentinel]:
    """Return all sentinels of the first functions that have one, of as many as are needed."""
    found: list[Sentinel] = []
    for name in functions:
        found += find_sentinels(sources, (name,))
        if len({it.test for it in found}) == MAX_SENTINELS:
            break
    return found


def _is_function(name: str, snapshot: Mapping[str, bytes]) -> bool:
    """Tell a test function from a doctest."""
    path, *names = name.split("::")
    is_module = path in snapshot and path.endswith(".py") and bool(is_protected(path))
    return is_module and all(map(str.isidentifier, names))


def _run(ids: tuple[str, ...], planted: Planted, baseline: Baseline, *, desk: Desk) -> SuiteRun:
    request = SuiteRequest(
        ids=(*ids, *(twin.id for twin in planted.twins)), plugins=baseline.plugins, guard=True
    )
    with changed_suite(desk, planted.files) as run_changed:
        return run_changed(request)
