"""Validate several Deletions in one run of the whole suite, each confirmed by itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from pipeline.observe import (
    NAMING,
    Case,
    find_candidates,
    first_unexplained,
    names_gone,
    refuse_survivors,
)
from pipeline.task.grade import Desk, changed_suite, outcomes_of
from pipeline.task.patch import apply_patch
from pipeline.task.patch_merge import merge_patches
from pipeline.task.record import Baseline, Deletion, Evidence, Feature, TestOutcome
from pipeline.task.reject import Reject
from pipeline.task.suite import WHOLE, EarlyStop, SuiteRun
from pipeline.task.tree import read_tree
from pipeline.validate import (
    REPEATS,
    RunChanged,
    judge_bytes,
    narrowed,
    refuse_limit,
    repeat,
    validate,
)

# `individual`: each Deletion has the suite to itself. `pooled`: several share one run of it.
EvidenceMode = Literal["individual", "pooled"]

# Deletions that share a run. Twice as many save only another tenth of the runs: tests overlap.
POOL_SIZE = 4

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A Deletion that is to be validated; see `validate` for the fields."""

    feature: Feature
    deletion: Deletion
    gone: frozenset[str]


def judge(
    candidates: Sequence[Candidate], *, mode: EvidenceMode, baseline: Baseline, desk: Desk
) -> tuple[Evidence | Reject, ...]:
    """Return the Evidence of each candidate, or why there is none.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    if mode == "individual":
        return tuple(_validate(it, baseline=baseline, desk=desk) for it in candidates)
    results: dict[Candidate, Evidence | Reject] = {}
    for pool in make_pools(candidates, read_tree(desk.tree), size=POOL_SIZE):
        found = validate_pooled(pool, baseline=baseline, desk=desk)
        results |= dict(zip(pool, found, strict=True))
    return tuple(results[it] for it in candidates)


def _validate(candidate: Candidate, *, baseline: Baseline, desk: Desk) -> Evidence | Reject:
    return validate(
        candidate.feature,
        candidate.deletion,
        baseline=baseline,
        desk=desk,
        gone=candidate.gone,
    )


def make_pools(
    candidates: Iterable[Candidate], snapshot: Mapping[str, bytes], *, size: int
) -> tuple[tuple[Candidate, ...], ...]:
    """Put each candidate into the first pool that has room for it and that it can join."""

    def can_join(pool: Sequence[Candidate], candidate: Candidate) -> bool:
        return merge([*pool, candidate], snapshot) is not None

    return first_fit(candidates, can_join, size=size)


def first_fit(
    items: Iterable[Item], can_join: Callable[[Sequence[Item], Item], bool], *, size: int
) -> tuple[tuple[Item, ...], ...]:
    """Put each item into the first group that has room for it and that it can join."""
    groups: list[list[Item]] = []
    for item in items:
        roomy = (it for it in groups if len(it) < size)
        group = next((it for it in roomy if can_join(it, item)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return tuple(map(tuple, groups))


def merge(
    candidates: Sequence[Candidate], snapshot: Mapping[str, bytes]
) -> dict[str, bytes | None] | None:
    """Return the changes of all Deletions together.

    None when two have a predicted test in common, or change the same lines.
    """
    tests = [key for it in candidates for key in it.feature.tests]
    if len(set(tests)) < len(tests):
        return None
    return merge_patches(snapshot, [it.deletion.patch for it in candidates])


def validate_pooled(
    candidates: Sequence[Candidate], *, baseline: Baseline, desk: Desk
) -> tuple[Evidence | Reject, ...]:
    """Return what `validate` would of each candidate, for little more than one run of the suite.

    Each is confirmed on a tree of its own: there its targets break, three times with the run that
    is shared, and those of the others pass. What is shared is the proof that all other tests pass:
    a test that only one of two Deletions together breaks would count against both. Whatever cannot
    be told apart (a test that breaks and names what is gone of none or of two) is validated
    individually, and is then not marked as pooled.

    Raises:
        ValueError: the candidates cannot be merged.
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    if merge(candidates, read_tree(desk.tree)) is None:
        titles = ", ".join(it.feature.title for it in candidates)
        raise ValueError(f"{titles}: expected Deletions that can be merged")
    results = _judge_pool(candidates, baseline=baseline, desk=desk) if len(candidates) > 1 else {}
    return tuple(
        results[number] if number in results else _validate(it, baseline=baseline, desk=desk)
        for number, it in enumerate(candidates)
    )


def _judge_pool(
    candidates: Sequence[Candidate], *, baseline: Baseline, desk: Desk
) -> dict[int, Evidence | Reject]:
    """Judge by their numbers those that can be told apart."""
    results: dict[int, Evidence | Reject] = {}
    with ExitStack() as stack:
        members: dict[int, _Member] = {}
        for number, candidate in enumerate(candidates):
            others = [key for it in candidates if it is not candidate for key in it.feature.tests]
            entered = _enter(candidate, others, baseline=baseline, desk=desk, stack=stack)
            if isinstance(entered, Reject):
                results[number] = entered
            elif entered is not None:
                members[number] = entered
        if len(members) > 1:
            results |= _judge_together(members, desk=desk)
    return results


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A candidate whose prediction is borne out on a tree of its own."""

    candidate: Candidate
    case: Case
    run_changed: RunChanged
    first: SuiteRun


def _enter(
    candidate: Candidate,
    others: Sequence[str],
    *,
    baseline: Baseline,
    desk: Desk,
    stack: ExitStack,
) -> _Member | Reject | None:
    """Run the targets of all on one candidate's tree; None when it breaks those of others."""
    reject = judge_bytes(candidate.deletion, desk=desk)
    if reject is not None:
        return reject
    changes = apply_patch(read_tree(desk.tree), candidate.deletion.patch)
    run_changed = stack.enter_context(changed_suite(desk, changes))
    tests = candidate.feature.tests
    first = run_changed(narrowed(REPEATS[0], (*tests, *others)))
    reject = refuse_limit(first) or refuse_survivors(tests, outcomes_of(first, tests))
    if reject is not None:
        return reject
    if set(outcomes_of(first, others).values()) - {"passed"}:
        return None
    case = Case(feature=candidate.feature, baseline=baseline, gone=candidate.gone)
    return _Member(candidate=candidate, case=case, run_changed=run_changed, first=first)


def _judge_together(members: Mapping[int, _Member], *, desk: Desk) -> dict[int, Evidence | Reject]:
    """Run the whole suite without any of the Features; leave out what cannot be told apart."""
    baseline = next(iter(members.values())).case.baseline
    owners = {key: number for number, it in members.items() for key in it.case.feature.tests}
    changes = merge([it.candidate for it in members.values()], read_tree(desk.tree))
    if changes is None:
        return {}
    others = tuple(key for key in baseline.passing if key not in owners)
    with changed_suite(desk, changes) as run_changed:
        whole = run_changed(replace(WHOLE, stop=EarlyStop(must_pass=others, excused=NAMING)))
    owners |= _adopt(whole, members, others)
    results: dict[int, Evidence | Reject] = {}
    for number, member in members.items():
        foreign = [key for key, owner in owners.items() if owner != number]
        result = _judge_alone(member, _without(whole, foreign))
        if result is not None:
            results[number] = result
    return results


def _adopt(
    whole: SuiteRun, members: Mapping[int, _Member], others: Iterable[str]
) -> dict[str, int]:
    """Return whose each test is that breaks and names what is gone of one member alone."""
    found = {}
    for key in others:
        message = whole.messages.get(key, "")
        owning = [number for number, it in members.items() if names_gone(message, it.case.gone)]
        if len(owning) == 1:
            found[key] = owning[0]
    return found


def _without(whole: SuiteRun, foreign: Iterable[str]) -> SuiteRun:
    """Return a run as if the tests of other members had passed, as they do on this one's tree."""
    gone = set(foreign)
    passed = (TestOutcome(id=key, outcome="passed", duration_s=0.0) for key in gone)
    return replace(
        whole,
        outcomes=(*(it for it in whole.outcomes if it.id not in gone), *passed),
        messages={key: text for key, text in whole.messages.items() if key not in gone},
    )


def _judge_alone(member: _Member, whole: SuiteRun) -> Evidence | Reject | None:
    """Judge a member by its part of the shared run; None when that does not settle it."""
    if refuse_limit(whole) or first_unexplained(member.case, whole):
        return None
    candidates = find_candidates(member.case, whole)
    if isinstance(candidates, Reject):
        return None
    result = repeat(
        member.case,
        candidates,
        run_changed=member.run_changed,
        first=member.first,
        whole=whole,
    )
    return replace(result, pooled=True) if isinstance(result, Evidence) else None
