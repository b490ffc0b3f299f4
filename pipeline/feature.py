"""Find the Features of a tree that a nameable group of tests alone reaches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pipeline.language.python.layout import Layout, module_name
from pipeline.language.python.references import ReferenceIndex, index_tree
from pipeline.language.python.sources import package_files
from pipeline.language.python.symbols import Definition
from pipeline.language.python.usage import is_used_at_import, is_used_elsewhere
from pipeline.task.record import Baseline, Feature, Reject, content_id
from pipeline.trace import Trace

# Code that more of the tests reach is a foundation, not a feature.
MAX_REACHED_SHARE = 0.3
# A smaller body is a line to type, not a feature to grow back.
MIN_BODY_LINES = 3
# A group of tests in more files than this has no name.
MAX_GROUP_FILES = 3
# How many candidates a slot tries.
MAX_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is no task, and why."""

    # What a person calls it.
    subject: str
    reject: Reject


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The public definitions of a tree, sorted into candidates and the rest."""

    features: tuple[Feature, ...]
    left_out: tuple[LeftOut, ...]


def find_features(
    sources: Mapping[str, str], *, trace: Trace, baseline: Baseline, import_roots: Sequence[str]
) -> Found:
    """Judge each public function, class and method of the packages under test."""
    package = package_files(sources, traced={path for path, _ in trace.tests})
    index = index_tree(sources, import_roots=import_roots)
    features, left_out = [], []
    for (path, _), definition in sorted(index.definitions.items()):
        if path not in package or not path.endswith(".py") or not definition.is_public:
            continue
        result = _judge(definition, trace=trace, baseline=baseline, index=index, package=package)
        title = title_of(definition, index.layout)
        if isinstance(result, Reject):
            left_out.append(LeftOut(subject=title, reject=result))
        else:
            features.append(
                Feature(
                    title=title,
                    symbols=(definition.symbol,),
                    tests=result,
                    group=name_group(result),
                )
            )
    return Found(features=tuple(features), left_out=tuple(left_out))


def _judge(
    definition: Definition,
    *,
    trace: Trace,
    baseline: Baseline,
    index: ReferenceIndex,
    package: frozenset[str],
) -> tuple[str, ...] | Reject:
    """Return the tests of a definition, or why it is no candidate; the cheap questions first."""
    if definition.num_body_lines < MIN_BODY_LINES:
        return _reject("too_small", f"{definition.num_body_lines} lines of code")
    names = _functions_of(definition, trace)
    tests = _tests_of(names, trace, order=baseline.passing)
    if any(name in trace.early for name in names):
        return _reject("reached_at_import", "runs while modules are imported or tests collected")
    refused = _judge_tests(tests, num_baseline=len(baseline.passing))
    if refused is not None:
        return refused
    if used := is_used_elsewhere(definition, index, within_package=package):
        return _reject("used_elsewhere", used)
    if used := is_used_at_import(definition, index):
        return _reject("used_at_import", used)
    return tests


def _judge_tests(tests: tuple[str, ...], *, num_baseline: int) -> Reject | None:
    if not tests:
        return _reject("no_test_reaches_it", "no test of the baseline enters it")
    share = len(tests) / num_baseline
    if share > MAX_REACHED_SHARE:
        return _reject("reached_by_too_many_tests", f"{share:.0%} of the tests enter it")
    if not name_group(tests):
        num_files = len({key.split("::")[0] for key in tests})
        return _reject("no_nameable_group", f"its {len(tests)} tests stand in {num_files} files")
    return None


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="feature", reason=reason, detail=detail)


def _functions_of(definition: Definition, trace: Trace) -> list[tuple[str, str]]:
    """Return the traced functions that are the definition or stand inside it."""
    symbol = definition.symbol
    inner = f"{symbol.qualname}."
    return [
        (symbol.path, name)
        for name in sorted(trace.names.get(symbol.path, ()))
        if name == symbol.qualname or name.startswith(inner)
    ]


def _tests_of(
    names: Sequence[tuple[str, str]], trace: Trace, *, order: Sequence[str]
) -> tuple[str, ...]:
    reached = {key for name in names for key in trace.tests.get(name, ())}
    return tuple(key for key in order if key in reached)


def title_of(definition: Definition, layout: Layout) -> str:
    """Return the importable path of a definition."""
    return f"{module_name(layout, definition.symbol.path)}.{definition.symbol.qualname}"


def name_group(tests: Sequence[str]) -> str:
    """Name what the tests have in common: a function, a class, a file, a few files; else empty."""
    files = list(dict.fromkeys(key.split("::")[0] for key in tests))
    if len(files) > MAX_GROUP_FILES:
        return ""
    if len(files) > 1:
        return ", ".join(f"`{file}`" for file in files)
    parts = [key.split("[")[0].split("::") for key in tests]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return f"`{'::'.join(common)}`"


def order_features(features: Sequence[Feature], *, repo: str, seed: int) -> tuple[Feature, ...]:
    """Shuffle by the seed and each feature's own name; the kinds take turns."""
    kinds: dict[str, list[Feature]] = {}
    for feature in sorted(features, key=lambda it: content_id(seed, repo, it.symbols)):
        kinds.setdefault(feature.symbols[0].kind, []).append(feature)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return tuple(feature for turn in turns for feature in turn if feature is not None)


def drop_overlaps(features: Sequence[Feature]) -> Found:
    """Keep the first of features that are inside one another, such as a class and its method."""
    kept: list[Feature] = []
    left_out = []
    for feature in features:
        other = next((it for it in kept if _overlap(it, feature)), None)
        if other is None:
            kept.append(feature)
        else:
            reject = Reject(stage="selection", reason="overlaps", detail=f"with {other.title}")
            left_out.append(LeftOut(subject=feature.title, reject=reject))
    return Found(features=tuple(kept), left_out=tuple(left_out))


def _overlap(one: Feature, other: Feature) -> bool:
    return any(
        a.path == b.path
        and (
            f"{a.qualname}.".startswith(f"{b.qualname}.") or b.qualname.startswith(f"{a.qualname}.")
        )
        for a in one.symbols
        for b in other.symbols
    )


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
    reject = Reject(stage="selection", reason="not_tried", detail=detail)
    return LeftOut(subject=feature.title, reject=reject)
