"""Choose which candidates are tried, in which order: many kinds and sizes, little overlap."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from pipeline.feature import Found, LeftOut
from pipeline.task.canonical import content_id
from pipeline.task.record import Feature, FeatureKind
from pipeline.task.reject import Reject

Size = Literal["small", "medium", "large"]
# Lines of code from which a feature is no longer small, or medium.
MEDIUM_LINES, LARGE_LINES = 15, 60

# How many candidates a slot tries.
MAX_TRIES = 4
# Of two candidates that share more of their lines than this only one is tried.
MAX_SHARED = 0.5

Line = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is wanted of each Repo.

    Example: `Choice(max_tasks=12, kinds=("module", "cross-cutting"), sizes=("large",))`.
    """

    # None for every candidate that validates.
    max_tasks: int | None = None
    # Empty for all.
    kinds: tuple[FeatureKind, ...] = ()
    # Empty for all.
    sizes: tuple[Size, ...] = ()
    seed: int = 0


def size_of(feature: Feature) -> Size:
    """Return the size band of a feature."""
    if feature.num_lines < MEDIUM_LINES:
        return "small"
    return "medium" if feature.num_lines < LARGE_LINES else "large"


def choose(features: Sequence[Feature], choice: Choice, *, repo: str) -> Found:
    """Return the candidates that are tried, in order, and why the others are not."""
    wanted, others = [], []
    for feature in features:
        if refused := _refuse(feature, choice):
            others.append(LeftOut(subject=feature.title, reject=refused))
        else:
            wanted.append(feature)
    kept = drop_overlaps(order_features(wanted, repo=repo, seed=choice.seed))
    return Found(features=kept.features, left_out=(*others, *kept.left_out))


def _refuse(feature: Feature, choice: Choice) -> Reject | None:
    size = size_of(feature)
    if choice.kinds and feature.kind not in choice.kinds:
        return _reject("not_wanted", f"it is a {feature.kind}")
    if choice.sizes and size not in choice.sizes:
        return _reject("not_wanted", f"it is {size}: {feature.num_lines} lines of code")
    return None


def order_features(features: Sequence[Feature], *, repo: str, seed: int) -> tuple[Feature, ...]:
    """Shuffle by the seed and each feature's own names; kinds take turns, and sizes in a kind."""
    shuffled = sorted(
        features, key=lambda it: content_id(seed, repo, it.symbols, it.constants, it.option)
    )
    kinds: dict[FeatureKind, dict[Size, list[Feature]]] = {}
    for feature in shuffled:
        kinds.setdefault(feature.kind, {}).setdefault(size_of(feature), []).append(feature)
    queues = [_in_turns(list(kinds[kind].values())) for kind in sorted(kinds)]
    return tuple(_in_turns(queues))


def _in_turns(queues: Sequence[Sequence[Feature]]) -> list[Feature]:
    return [it for turn in zip_longest(*queues) for it in turn if it is not None]


def drop_overlaps(features: Sequence[Feature]) -> Found:
    """Keep the first of features that are mostly the same code."""
    kept: list[tuple[Feature, frozenset[Line]]] = []
    left_out = []
    for feature in features:
        lines = _lines_of(feature)
        other = next((it for it, taken in kept if _overlap(taken, lines) > MAX_SHARED), None)
        if other is None:
            kept.append((feature, lines))
        else:
            reject = _reject("overlaps", f"with {other.title}")
            left_out.append(LeftOut(subject=feature.title, reject=reject))
    return Found(features=tuple(it for it, _ in kept), left_out=tuple(left_out))


def _lines_of(feature: Feature) -> frozenset[Line]:
    """Return the lines of a feature; an option shares none with what takes it."""
    if feature.option:
        return frozenset((f"{it.path}:{feature.option}", it.first_line) for it in feature.symbols)
    return frozenset(
        (it.path, line) for it in feature.symbols for line in range(it.first_line, it.last_line + 1)
    )


def _overlap(one: frozenset[Line], other: frozenset[Line]) -> float:
    """Return what two features share of what either has (Jaccard)."""
    return len(one & other) / len(one | other)


def deal_slots(
    features: Sequence[Feature], *, max_tasks: int | None
) -> tuple[tuple[tuple[Feature, ...], ...], tuple[LeftOut, ...]]:
    """Deal candidates to slots; return the slots and the candidates that no slot tries.

    A slot makes one task at most and tries its candidates in order, so the outcome does not depend
    on which slot is worked first.
    """
    if max_tasks is None:
        return tuple((feature,) for feature in features), ()
    slots = tuple(tuple(features[number::max_tasks][:MAX_TRIES]) for number in range(max_tasks))
    slots = tuple(slot for slot in slots if slot)
    dealt = {feature.title for slot in slots for feature in slot}
    detail = f"{max_tasks} slots try {MAX_TRIES} candidates each"
    return slots, tuple(not_tried(it, detail) for it in features if it.title not in dealt)


def not_tried(feature: Feature, detail: str) -> LeftOut:
    """Book a candidate that nobody tried."""
    return LeftOut(subject=feature.title, reject=_reject("not_tried", detail))


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="selection", reason=reason, detail=detail)
