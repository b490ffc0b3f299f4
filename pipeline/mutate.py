"""Measure how much the targets notice: make small mistakes in the deleted code, one at a time."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pipeline.language.python.mutants import Mutant, mutants_of
from pipeline.sandbox.protocol import Limits
from pipeline.task.canonical import content_id
from pipeline.task.changed import changing_suite
from pipeline.task.grade import Desk, changed_limits, outcomes_of
from pipeline.task.patch import is_protected
from pipeline.task.patch_text import Hunk, parse_patch
from pipeline.task.record import Baseline, Deletion, Evidence
from pipeline.task.reject import Reject
from pipeline.task.suite import EarlyStop, SuiteRequest
from pipeline.task.tree import read_tree

# Which ids of the Baseline run a line of the Snapshot, by path and number.
TestsAt = Callable[[str, int], Collection[str]]

# Each costs a narrow run. Fewer than the last number prove nothing when none is killed.
NUM_MUTANTS = 4
MIN_MUTANTS = 3
# Tests that a mutant is shown to: so many, or this share of the Baseline. All mutants together
# then cost less than a tenth of the suite, and mostly far less: the first that fails ends a run.
MIN_TESTS = 5
MAX_TEST_SHARE = 0.02
# CPU seconds that a mutant may take beyond those of the whole suite: some never end.
PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A mutant, and the targets that it is shown to."""

    path: str
    # Of the whole module.
    content: bytes
    mutant: Mutant
    tests: tuple[str, ...]


def measure_strength(
    evidence: Evidence,
    deletion: Deletion,
    *,
    baseline: Baseline,
    desk: Desk,
    tests_at: TestsAt | None = None,
) -> Evidence | Reject:
    """Count the mutants that are tried, and those that a target notices.

    Some mutants mean the same as the code they are of, so a low rate is recorded. That not one of
    several is noticed is a Reject.

    Args:
        evidence: of the Deletion.
        deletion: of the code that is mutated.
        baseline: of the Snapshot.
        desk: where to run the targets.
        tests_at: as traced; without it each target may run each line.

    Raises:
        SandboxStoppedError, SandboxBrokenError: nothing was learnt.
    """
    targets = tuple(it.id for it in evidence.fail_to_pass)
    most = max(MIN_TESTS, int(MAX_TEST_SHARE * len(baseline.passing)))
    snapshot = read_tree(desk.tree)
    trials = choose_trials(deletion, snapshot, targets, tests_at=tests_at, max_tests=most)
    killed = _killed(trials, baseline=baseline, desk=desk)
    if not killed and len(trials) >= MIN_MUTANTS:
        where = ", ".join(f"{it.path}:{it.mutant.line}" for it in trials)
        detail = f"none of {len(trials)} small mistakes in it is noticed: {where}"
        return Reject(stage="validation", reason="weak_tests", detail=detail)
    return replace(evidence, num_mutants=len(trials), num_killed=len(killed))


def choose_trials(
    deletion: Deletion,
    snapshot: Mapping[str, bytes],
    targets: tuple[str, ...],
    *,
    tests_at: TestsAt | None,
    max_tests: int,
) -> tuple[Trial, ...]:
    """Draw a few mutants by the content of the Deletion, and tests of each.

    Kinds of mistakes take turns, and no line has two of them while there are others.
    """
    draw = content_id(deletion.patch)
    found = [
        (path, mutant)
        for path, lines in removed_lines(deletion.patch).items()
        for mutant in mutants_of(snapshot[path], lines)
    ]
    found.sort(key=lambda it: content_id(draw, it[0], it[1].start, it[1].end, it[1].mistake))
    drawn = sorted(targets, key=lambda key: content_id(draw, key))
    trials = (
        Trial(path=path, content=content, mutant=mutant, tests=tuple(tests))
        for path, mutant in _by_turns(found)
        if (tests := list(islice(_running(drawn, path, mutant.line, tests_at), max_tests)))
        if (content := mutant.apply(snapshot[path])) is not None
    )
    return tuple(islice(trials, NUM_MUTANTS))


def removed_lines(patch: str) -> dict[str, frozenset[int]]:
    """Return the numbers of the lines that a patch removes, for each module that is no test."""
    modules = [it for it in parse_patch(patch) if it.path.endswith(".py")]
    return {
        file.path: frozenset(number for hunk in file.hunks for number in _removed(hunk))
        for file in modules
        if not is_protected(file.path)
    }


def _removed(hunk: Hunk) -> Iterator[int]:
    number = hunk.old_start
    for sign, _ in hunk.lines:
        if sign == "-":
            yield number
        number += sign != "+"


def _by_turns(found: Sequence[tuple[str, Mutant]]) -> Iterator[tuple[str, Mutant]]:
    """Yield all of them, those of a new kind on a new line first."""
    later = []
    kinds: set[str] = set()
    lines: set[tuple[str, int]] = set()
    for path, mutant in found:
        if mutant.mistake in kinds or (path, mutant.line) in lines:
            later.append((path, mutant))
            continue
        kinds.add(mutant.mistake)
        lines.add((path, mutant.line))
        yield path, mutant
    yield from sorted(later, key=lambda it: (it[0], it[1].line) in lines)


def _running(
    targets: Sequence[str], path: str, line: int, tests_at: TestsAt | None
) -> Iterator[str]:
    running = targets if tests_at is None else frozenset(tests_at(path, line))
    return (key for key in targets if key in running)


def _killed(trials: Sequence[Trial], *, baseline: Baseline, desk: Desk) -> list[Trial]:
    """Return the mutants with which a test does not pass; a run without end is noticed too."""
    expected_s = desk.bench.command.wall_s
    limits = Limits(wall_s=changed_limits(expected_s).wall_s, cpu_s=PATIENCE_S + expected_s)
    killed = []
    with changing_suite(desk, limits=limits) as run_changed:
        for trial in trials:
            stop = EarlyStop(must_pass=trial.tests)
            request = SuiteRequest(ids=trial.tests, plugins=baseline.plugins, stop=stop)
            run = run_changed({trial.path: trial.content}, request)
            if set(outcomes_of(run, trial.tests).values()) != {"passed"}:
                killed.append(trial)
    return killed
