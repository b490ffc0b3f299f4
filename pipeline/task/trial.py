"""Measure on the Snapshot what the grades of a Task may rest on: Grading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.task.changed import Desk, changed_suite
from pipeline.task.patch import is_protected
from pipeline.task.planting import Planted, plant
from pipeline.task.record import Baseline, FailToPass, Grading, Sentinel, content_id
from pipeline.task.solve_tree import (
    choose_hidden,
    choose_shortened,
    function_of,
    shorten_tests,
)
from pipeline.task.suite import SuiteRequest, SuiteRun
from pipeline.task.tree import changes_between, read_tree
from pipeline.task.twins import find_sentinels
from pipeline.task.verdict import is_failing, outcomes_by_function

# More need not be tried: a run draws a few.
MAX_SENTINELS = 12
MAX_CLONES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Twins that may be kept."""

    sentinels: tuple[Sentinel, ...]
    clones: tuple[str, ...]


def measure_grading(
    targets: Sequence[FailToPass], *, baseline: Baseline, desk: Desk, seed: int, task_id: str
) -> Grading:
    """Choose hidden tests, and the twins that fail or pass on the Snapshot as they must.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    snapshot = read_tree(desk.tree)
    ids = [target.id for target in targets]
    candidates = _candidates(ids, snapshot, draw=(seed, task_id))
    planted = plant(snapshot, sentinels=candidates.sentinels, clones=candidates.clones)
    run = _run(planted, baseline, desk=desk) if planted.twins else None
    outcomes = outcomes_by_function(run) if run else {}
    clones = [
        twin.test
        for twin in planted.twins
        if twin.sentinel is None and set(outcomes.get(twin.id, ())) == {"passed"}
    ]
    withheld = _withhold(ids, snapshot, baseline, desk=desk, draw=(seed, task_id))
    return Grading(
        plugins=baseline.plugins,
        alarms=baseline.alarms,
        hidden=withheld.hidden,
        shortened=withheld.shortened,
        # Where a faithful copy fails, a wrong one proves nothing.
        sentinels=tuple(
            twin.sentinel
            for twin in planted.twins
            if twin.sentinel is not None
            and twin.test in clones
            and is_failing(outcomes.get(twin.id, ()))
        ),
        clones=tuple(clones[:MAX_CLONES]),
    )


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
    found = find_sentinels(sources, tuple(functions))
    rank = {name: number for number, name in enumerate(functions)}
    sentinels = sorted(found, key=lambda it: (it.number, rank[it.test]))[:MAX_SENTINELS]
    clones = dict.fromkeys((*functions[:MAX_CLONES], *(it.test for it in sentinels)))
    return _Candidates(sentinels=tuple(sentinels), clones=tuple(clones))


def _is_function(name: str, snapshot: Mapping[str, bytes]) -> bool:
    """Tell a test function from a doctest."""
    path, *names = name.split("::")
    is_module = path in snapshot and path.endswith(".py") and bool(is_protected(path))
    return is_module and all(map(str.isidentifier, names))


def _run(planted: Planted, baseline: Baseline, *, desk: Desk) -> SuiteRun:
    request = SuiteRequest(
        ids=tuple(twin.id for twin in planted.twins), plugins=baseline.plugins, guard=True
    )
    with changed_suite(desk, planted.files) as run_changed:
        return run_changed(request)
