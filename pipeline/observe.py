"""Read off runs of an ablated tree which tests are the targets: pure, from outcomes to Evidence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.task.grade import outcomes_of
from pipeline.task.patch import is_protected
from pipeline.task.record import (
    Baseline,
    Evidence,
    FailToPass,
    Feature,
    Outcome,
    Quarantined,
    TestRun,
    TreeName,
)
from pipeline.task.reject import Reject
from pipeline.task.solve_tree import function_of
from pipeline.task.suite import SuiteRun

Outcomes = Mapping[str, Outcome]

# What a target may do on the ablated tree; a doctest goes missing with its docstring.
BROKEN: frozenset[Outcome] = frozenset({"failed", "error", "missing"})
# What a test may break with because something that it names is gone.
NAMING = (
    *("AttributeError", "FixtureLookupError", "ImportError", "IndexError", "KeyError"),
    *("LookupError", "ModuleNotFoundError", "NameError", "TypeError", "UnboundLocalError"),
)
# Tests that were not predicted are adopted: so many, or as many as were predicted.
MIN_ADOPTED = 3
# Of the Baseline: what more tests need is a foundation, not a feature.
MAX_TARGET_SHARE = 0.3
PATH = re.compile(r"/[^\s'\"]+")
DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be judged."""

    feature: Feature
    baseline: Baseline
    # What a test may complain of: names of deleted symbols and modules, last parts and dotted ones.
    gone: frozenset[str]


def refuse_survivors(tests: Sequence[str], outcomes: Outcomes) -> Reject | None:
    """Refuse a prediction that is not borne out: none breaks.

    A test that enters the Feature and breaks not without it is none of its tests. One that is
    skipped without it can be held to nothing.
    """
    survivors = [key for key in tests if outcomes[key] not in BROKEN]
    odd = [key for key in survivors if outcomes[key] != "passed"]
    if not odd and len(survivors) < len(tests):
        return None
    first = (odd or survivors)[0]
    detail = f"{len(survivors)} of {len(tests)} targets do not break: {first}: {outcomes[first]}"
    return _reject("target_survives", detail)


def find_candidates(case: Case, whole: SuiteRun) -> tuple[str, ...] | Reject:
    """Return the predicted tests and those adopted, in order of the Baseline.

    A test is adopted when it breaks with an exception that names something gone.
    """
    predicted = set(case.feature.tests)
    outcomes = outcomes_of(whole, case.baseline.passing)
    # In this order: a run that was ended early has reported what ended it, and not much else.
    reject = first_unexplained(case, whole) or refuse_survivors(case.feature.tests, outcomes)
    if reject is not None:
        return reject
    adopted = [key for key in outcomes if key not in predicted and outcomes[key] != "passed"]
    lost = [key for key in adopted if outcomes[key] == "missing"]
    if lost:
        return _reject("others_break", f"{len(lost)} other tests are not run, first: {lost[0]}")
    if len(adopted) > max(MIN_ADOPTED, len(predicted)):
        detail = f"{len(adopted)} other tests break, {len(predicted)} were predicted: {adopted[0]}"
        return _reject("others_break", detail)
    num_broken = len(adopted) + sum(outcomes[key] in BROKEN for key in predicted)
    share = num_broken / len(outcomes)
    if share > MAX_TARGET_SHARE:
        detail = f"{share:.0%} of the tests break, expected at most {MAX_TARGET_SHARE:.0%}"
        return _reject("others_break", detail)
    return tuple(key for key in outcomes if key in predicted.union(adopted))


def first_unexplained(case: Case, whole: SuiteRun) -> Reject | None:
    """Refuse a Deletion that breaks a test which is neither predicted nor says what it misses."""
    predicted = set(case.feature.tests)
    reported = whole.by_id()
    for key in case.baseline.passing:
        if key in predicted or key not in reported or reported[key].outcome == "passed":
            continue
        if not names_gone(whole.messages.get(key, ""), case.gone):
            does = f"{reported[key].outcome}: {whole.symptom(key)}".removesuffix(": ")
            return _reject("others_break", f"another test breaks: {key}: {does}")
    return None


def names_gone(message: str, gone: frozenset[str]) -> bool:
    """Tell whether an exception is of a kind that names what is missing, and names what is gone.

    >>> names_gone("NameError: name 'slug' is not defined", frozenset({"slug"}))
    True
    """
    kind, _, text = message.partition(": ")
    words = DOTTED.findall(PATH.sub("", text))
    parts = {part for word in words for part in word.split(".")}
    return kind in NAMING and not gone.isdisjoint(parts.union(words))


def was_ended_early(run: SuiteRun) -> bool:
    """Tell whether tests were collected and not run."""
    return len(run.outcomes) < len(run.collected)


def conclude(
    case: Case, candidates: Sequence[str], whole: SuiteRun, repeats: Sequence[Outcomes]
) -> Evidence | Reject:
    """Return the Evidence of runs that agree.

    Args:
        case: what is judged.
        candidates: predicted and adopted tests.
        whole: the run of the whole suite.
        repeats: what the candidates did in each of the other runs.
    """
    outcomes = outcomes_of(whole, case.baseline.passing)
    broken = tuple(key for key in candidates if outcomes[key] in BROKEN)
    flaky = [key for key in candidates for it in repeats if _differs(outcomes[key], it[key])]
    if flaky:
        does = "do not break" if outcomes[flaky[0]] in BROKEN else "break"
        detail = f"{len(set(flaky))} targets {does} when repeated: {flaky[0]}"
        return _reject("flaky_target", detail)
    own = {it.id for it in _own_doctests(broken, outcomes)}
    targets = tuple(
        FailToPass(id=key, ablated=outcomes[key], symptom=whole.symptom(key))
        for key in broken
        if key not in own
    )
    if not targets:
        return _reject("only_own_doctests", f"its {len(own)} tests are doctests that go with it")
    return judge_places(targets) or Evidence(
        fail_to_pass=targets,
        pass_to_pass=tuple(key for key in outcomes if key not in broken),
        quarantined=case.baseline.quarantined + _own_doctests(broken, outcomes),
        runs=(
            count_run("ablated", outcomes),
            *(count_run("ablated", {key: it[key] for key in broken}) for it in repeats),
            # Byte for byte the Snapshot, of which this is known.
            count_run("restored", dict.fromkeys(outcomes, "passed")),
        ),
    )


def _differs(one: Outcome, other: Outcome) -> bool:
    return (one in BROKEN) != (other in BROKEN)


def _own_doctests(broken: Sequence[str], outcomes: Outcomes) -> tuple[Quarantined, ...]:
    """Book the targets that stood in the deleted code: nobody can be asked to write them again."""
    return tuple(
        Quarantined(id=key, reason="own-doctest")
        for key in broken
        if outcomes[key] == "missing" and not is_protected(key.split("::")[0])
    )


def judge_places(targets: tuple[FailToPass, ...]) -> Reject | None:
    """Refuse targets that a solver can change: tests in files that do not look like tests."""
    files = [target.id.split("::")[0] for target in targets]
    within = [it.id for it, file in zip(targets, files, strict=True) if not is_protected(file)]
    functions = [key for key in within if _is_function(key)]
    if functions or len(within) == len(targets):
        detail = f"a solver's patch may change {(functions or within)[0]}"
        return _reject("unprotected_target", detail)
    return None


def _is_function(key: str) -> bool:
    """Tell the id of a test function from that of a doctest, which names its module."""
    path, *names = function_of(key).split("::")
    module = PurePosixPath(path.removesuffix("/__init__.py")).stem
    return names != [module] and all(map(str.isidentifier, names))


def count_run(tree: TreeName, outcomes: Outcomes) -> TestRun:
    """Count the outcomes of the ids that a verdict rests on."""
    values = list(outcomes.values())
    return TestRun(
        tree=tree,
        num_passed=values.count("passed"),
        num_failed=values.count("failed"),
        num_error=values.count("error"),
        num_missing=sum(value not in {"passed", "failed", "error"} for value in values),
    )


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="validation", reason=reason, detail=detail)
