"""Judge one run of a graded tree: what it proves, and what it was made to look like."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.task.receipt import TwinResult, Verdict
from pipeline.task.record import Outcome, Sentinel
from pipeline.task.solve_tree import function_of
from pipeline.task.suite import Alarm, SuiteRun

# What a test that must fail may do: anything else is no failure.
FAILURES = frozenset({"failed", "error"})
PASSES = frozenset({"passed", "xpassed"})
INTEGRITY = "integrity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Defences:
    """What stands between a patch and a reward.

    All are up wherever a grade counts; a benchmark alone takes some down, to show what each buys.
    """

    # Only source that an honest solver needs is applied; tricks are refused.
    screen: bool = True
    # Tests and their configuration are the Snapshot's, byte for byte.
    restore_tests: bool = True
    # Only the plugins that the Baseline loaded are loaded.
    pinned_plugins: bool = True
    # Each expected id must be reported and passed; else the exit status decides.
    expected_ids: bool = True
    # Lines that the recorder has not written, and ids that are reported twice, count.
    nonce: bool = True
    # pytest's own report must agree with the recorder.
    two_channels: bool = True
    # pytest must end as it began.
    integrity: bool = True
    # What cheats do and honest code does not counts.
    audit: bool = True
    # Twins that must fail are planted.
    sentinels: bool = True
    # Copies that must pass are planted.
    clones: bool = True
    # Tests that the solver was not shown are run.
    hidden: bool = True


ALL = Defences()


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A copy of a target, planted under a random name.

    Example: `Twin(id="tests/a.py::test_red_box", test="tests/a.py::test_b", sentinel=None)`.
    """

    # Without parameters.
    id: str
    # The target without parameters.
    test: str
    # What is wrong with it, so that it must fail; None for a faithful copy, which must pass.
    sentinel: Sentinel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a run is held to."""

    # Ids that must pass.
    ids: tuple[str, ...]
    twins: tuple[Twin, ...]
    # Alarms that the Snapshot's own suite raises: `event path`.
    alarms: frozenset[str]
    # Ids that no verdict rests on.
    quarantined: frozenset[str]
    # Of the run: the guard was up.
    is_guarded: bool
    defences: Defences


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a run comes to."""

    verdict: Verdict
    # One line: why it is not solved.
    detail: str
    # Expected ids that did not pass, with what they did.
    broken: tuple[tuple[str, Outcome], ...]
    twins: tuple[TwinResult, ...]
    # New ones: `event path`.
    alarms: tuple[str, ...]
    disagreement: str


def judge(run: SuiteRun, expected: Expectation) -> Judgement:
    """Judge a run: solved only if all that was expected is there and nothing was forged."""
    broken = tuple(
        (key, outcome) for key, outcome in outcomes_of(run, expected.ids).items()
        if outcome != "passed"
    )  # fmt: skip
    has_ended = run.ended and run.finished.limit is None
    disagreement = run.disagreement() if expected.is_guarded and has_ended else ""
    alarms = tuple(sorted(set(map(name_alarm, run.alarms)) - expected.alarms))
    functions = outcomes_by_function(run)
    twins = tuple(_result(twin, functions) for twin in expected.twins)
    evidence = (
        *_evidence(run, expected, alarms=alarms, disagreement=disagreement),
        *_believed(twins, functions),
    )
    shortfall = _shortfall(run, expected, broken=broken) or next(_odd_twins(twins), "")
    verdict: Verdict = "tampered" if evidence else "unsolved" if shortfall else "solved"
    detail = evidence[0] if evidence else shortfall
    return Judgement(
        verdict=verdict,
        detail=detail,
        broken=broken,
        twins=twins,
        alarms=alarms,
        disagreement=disagreement,
    )


def outcomes_of(run: SuiteRun, ids: Iterable[str]) -> dict[str, Outcome]:
    """Return what each id did; an id that the run did not report is `missing`."""
    reported = run.by_id()
    return {key: reported[key].outcome if key in reported else "missing" for key in ids}


def name_alarm(alarm: Alarm) -> str:
    """Return an alarm as records keep it."""
    return f"{alarm.event} {alarm.place}"


def _evidence(
    run: SuiteRun, expected: Expectation, *, alarms: tuple[str, ...], disagreement: str
) -> Iterator[str]:
    """Yield what shows that the run was tampered with."""
    defences = expected.defences
    if defences.nonce and run.forged:
        yield f"the results were forged: {run.forged}"
    for alarm in alarms:
        is_integrity = alarm.startswith(f"{INTEGRITY} ")
        if defences.integrity if is_integrity else defences.audit:
            yield f"alarm: {alarm}"
    if defences.two_channels and disagreement:
        yield f"the two reports disagree: {disagreement}"


def _believed(
    twins: Iterable[TwinResult], functions: Mapping[str, tuple[Outcome, ...]]
) -> Iterator[str]:
    """Yield the targets that pass together with a twin that expects otherwise.

    A twin alone may pass honestly: by a wrong solution that does what it expects.
    """
    for twin in twins:
        both = zip(functions.get(twin.test, ()), twin.outcomes, strict=False)
        if twin.number >= 0 and any(ours == "passed" and it in PASSES for ours, it in both):
            yield f"{twin.test} passes, and so does its twin with a wrong expectation"


def _shortfall(
    run: SuiteRun, expected: Expectation, *, broken: tuple[tuple[str, Outcome], ...]
) -> str:
    """Say what a run lacks to be a solution; empty when it lacks nothing."""
    if run.finished.limit is not None:
        return f"the suite went over its limit of {run.finished.limit}"
    if not expected.defences.expected_ids:
        return _bad_status(run, expected)
    if not run.ended:
        return f"pytest did not end, exit status {run.finished.exit_code}"
    if broken:
        (first, outcome), num = broken[0], len(broken)
        return f"{num} of {len(expected.ids)} tests do not pass, first: {first}: {outcome}"
    return ""


def _bad_status(run: SuiteRun, expected: Expectation) -> str:
    """Judge by the exit status alone, but for the tests that fail in any case."""
    status = run.finished.exit_code
    twins = {twin.id for twin in expected.twins}
    failing = [it.id for it in run.outcomes if it.outcome in FAILURES]
    is_known = all(it in expected.quarantined or function_of(it) in twins for it in failing)
    is_excused = status == 1 and failing and is_known and not run.collect_errors
    return "" if status == 0 or is_excused else f"pytest ended with status {status}"


def _odd_twins(twins: Iterable[TwinResult]) -> Iterator[str]:
    """Yield the twins that did not do what they must, short of tampering."""
    for twin in twins:
        if twin.number < 0 and set(twin.outcomes) != {"passed"}:
            yield f"a copy of {twin.test} does not pass: {_spelled(twin.outcomes)}"
        if twin.number >= 0 and not is_failing(twin.outcomes):
            yield f"a twin of {twin.test} does not fail: {_spelled(twin.outcomes)}"


def is_failing(outcomes: tuple[Outcome, ...]) -> bool:
    """Tell whether a test ran and failed, with each of its parameters."""
    return bool(outcomes) and FAILURES.issuperset(outcomes)


def _spelled(outcomes: tuple[Outcome, ...]) -> str:
    counts = Counter(outcomes)
    return ", ".join(f"{num} {name}" for name, num in sorted(counts.items())) or "missing"


def _result(twin: Twin, functions: Mapping[str, tuple[Outcome, ...]]) -> TwinResult:
    number = -1 if twin.sentinel is None else twin.sentinel.number
    return TwinResult(test=twin.test, number=number, outcomes=functions.get(twin.id, ()))


def outcomes_by_function(run: SuiteRun) -> Mapping[str, tuple[Outcome, ...]]:
    """Return what each test function did, with all its parameters."""
    found: dict[str, list[Outcome]] = {}
    for outcome in run.outcomes:
        found.setdefault(function_of(outcome.id), []).append(outcome.outcome)
    return {name: tuple(outcomes) for name, outcomes in found.items()}
