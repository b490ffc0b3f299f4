"""Set aside what of a suite is broken or wavers, until the rest is green run after run."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline.baseline import limits_for, measure_baseline, refuse_run
from pipeline.proposal.error import ProposalError, accepted
from pipeline.proposal.install import Trial, open_repo, run_first
from pipeline.proposal.record import Aside, Proposal, Shop, Subject
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.record import Baseline, TestOutcome
from pipeline.task.suite import SuiteRun, lasting

# CPU seconds of a run: a task costs a dozen of them.
MAX_CPU_S = 25.0
# Baselines until the suite must be steady.
ROUNDS = 4
# Of options in the manifest, of the suite's tests, and of its files.
MAX_ASIDES = 12
MAX_BAD_SHARE = 0.1
MAX_LOST_SHARE = 0.2
NUM_SLOWEST = 3
# Of tests that are left out for their time.
MAX_SLOW = 5

WAVERS = "Differs from run to run."
SLOW = "Takes most of the time."


def steady(trial: Trial, *, subject: Subject, shop: Shop) -> Proposal:
    """Return the entry whose suite passes in every run of a baseline.

    Args:
        trial: a first run.
        subject: the project.
        shop: what trying needs.

    Raises:
        ProposalError: too much of the suite is broken, or it takes too long.
    """
    trial, asides = _first(trial, subject=subject, shop=shop)
    for _ in range(ROUNDS):
        _refuse_many(asides, trial.run)
        desk = _desk(trial, asides, subject=subject, shop=shop)
        baseline = accepted(measure_baseline(_with(trial, asides), desk=desk))
        shop.say(f"{len(baseline.passing)} tests pass, {len(baseline.quarantined)} set aside")
        more = tuple(it for it in wavering(baseline) if it not in asides)
        if not more:
            _refuse_wavering(baseline)
            return _proposal(trial, asides, baseline=baseline)
        asides += more
    raise ProposalError(f"other tests fail in each of {ROUNDS} rounds: {asides[-1].value}")


def _first(trial: Trial, *, subject: Subject, shop: Shop) -> tuple[Trial, tuple[Aside, ...]]:
    """Set aside what a single run shows; run again what that run could not measure."""
    _check_end(trial.run)
    asides = broken(trial.run)
    _refuse_many(asides, trial.run)
    asides += slow(trial.run)
    # pytest runs nothing where a file does not import.
    if any(it.option == "--ignore" or it.why == SLOW for it in asides):
        trial = replace(trial, run=run_first(_desk(trial, asides, subject=subject, shop=shop)))
        _check_end(trial.run)
        asides += broken(trial.run)
    _check_cost(trial.run)
    return trial, asides


def broken(run: SuiteRun) -> tuple[Aside, ...]:
    """Return what does not work in a run: files that do not import, tests that fail."""
    bad = {
        key: it.exception for key, it in run.by_id().items() if it.outcome in {"failed", "error"}
    }
    good = [key for key in run.collected if key not in bad]
    ignored = tuple(
        Aside(option="--ignore", value=path, why=_sentence("Does not import", message))
        for path, message in run.collect_errors
        if path.endswith(".py")
    )
    return ignored + _deselected({key: _sentence("Fails", it) for key, it in bad.items()}, good)


def wavering(baseline: Baseline) -> tuple[Aside, ...]:
    """Return the tests that fail always or at times; what depends on order is left in."""
    bad = {
        it.id: WAVERS if it.reason == "flaky" else "Fails."
        for it in baseline.quarantined
        if it.reason in {"failing", "flaky"}
    }
    kept = {it.id for it in baseline.quarantined} - bad.keys()
    return _deselected(bad, {*baseline.passing, *kept})


def _deselected(bad: Mapping[str, str], good: Iterable[str]) -> tuple[Aside, ...]:
    """Deselect tests without their parameters where that takes no good one along.

    pytest deselects all ids that start with what it is given.
    """
    whys: dict[str, str] = {}
    for key, why in bad.items():
        name = key.partition("[")[0]
        fit = [it for it in (name, key) if not any(other.startswith(it) for other in good)]
        if fit and fit[0].isprintable():
            whys.setdefault(fit[0], why)
    return tuple(Aside(option="--deselect", value=name, why=why) for name, why in whys.items())


def slow(run: SuiteRun) -> tuple[Aside, ...]:
    """Return the few tests without which a run costs half of what it may; none if it does not."""
    rest_s = run.finished.cpu_s
    wall_s = sum(it.duration_s for it in run.outcomes)
    if rest_s <= MAX_CPU_S or not wall_s:
        return ()
    # Durations are told by the clock.
    share = min(rest_s / wall_s, 1.0)
    found = []
    for outcome in _slowest(run)[:MAX_SLOW]:
        if rest_s > MAX_CPU_S / 2:
            rest_s -= share * outcome.duration_s
            found.append(Aside(option="--deselect", value=outcome.id, why=SLOW))
    return tuple(found) if rest_s <= MAX_CPU_S else ()


def _slowest(run: SuiteRun) -> list[TestOutcome]:
    return sorted(run.outcomes, key=lambda it: -it.duration_s)


def _check_end(run: SuiteRun) -> None:
    """Refuse a run that did not end, or had nothing to do."""
    reject = refuse_run(run, stage="baseline")
    if reject is not None:
        accepted(reject)
    if not run.collected and not run.collect_errors:
        raise ProposalError("pytest collected no test")


def _check_cost(run: SuiteRun) -> None:
    if run.finished.cpu_s > MAX_CPU_S:
        named = ", ".join(f"{it.id} ({it.duration_s:.1f} s)" for it in _slowest(run)[:NUM_SLOWEST])
        cost = f"{run.finished.cpu_s:.0f} CPU seconds a run"
        raise ProposalError(f"{cost}, expected at most {MAX_CPU_S:.0f}; the slowest: {named}")


def _refuse_many(asides: tuple[Aside, ...], run: SuiteRun) -> None:
    values = tuple(it.value for it in asides)
    hit = [key for key in run.collected if key.startswith(values)] if values else []
    files = {key.partition("::")[0] for key in run.collected} | {it for it, _ in run.collect_errors}
    num_lost = sum(it.option == "--ignore" for it in asides)
    limits = (MAX_ASIDES, MAX_BAD_SHARE * len(run.collected), MAX_LOST_SHARE * len(files))
    if any(it > most for it, most in zip((len(asides), len(hit), num_lost), limits, strict=True)):
        errors = [*run.collect_errors, *run.messages.items()]
        first = ": ".join(errors[0]) if errors else asides[0].value
        what = f"{len(hit)} of {len(run.collected)} tests and {num_lost} files are broken"
        raise ProposalError(f"{what}, such as {lasting(first)[:200]}")


def _refuse_wavering(baseline: Baseline) -> None:
    """Refuse a suite of which much depends on order, on the grader, or on the moment."""
    bad = [it for it in baseline.quarantined if it.reason not in {"skipped", "xfailed"}]
    num_all = len(baseline.passing) + len(baseline.quarantined)
    if len(bad) > MAX_BAD_SHARE * num_all:
        first = f"{bad[0].id}: {bad[0].reason}"
        raise ProposalError(f"{len(bad)} of {num_all} tests do not pass each time, such as {first}")


def _desk(trial: Trial, asides: tuple[Aside, ...], *, subject: Subject, shop: Shop) -> Desk:
    repo = _with(trial, asides)
    return open_repo(repo, trial.environment, subject=subject, shop=shop)


def _with(trial: Trial, asides: tuple[Aside, ...]) -> Repo:
    """Return the entry with arguments for what is set aside, and limits by what a run took."""
    options = tuple(text for aside in asides for text in (aside.option, aside.value))
    test = replace(
        trial.repo.test,
        args=(*trial.repo.test.args, *options),
        # Limits come from it: a machine that is busy now will be so again.
        wall_s=float(math.ceil(max(trial.run.finished.cpu_s, trial.run.finished.wall_s))),
    )
    return replace(trial.repo, test=test)


def _proposal(trial: Trial, asides: tuple[Aside, ...], *, baseline: Baseline) -> Proposal:
    first = trial.run.finished
    # Together what has one reason.
    asides = tuple(sorted(asides, key=lambda it: it.why))
    repo = _with(trial, asides)
    by_work = replace(repo, test=replace(repo.test, wall_s=float(math.ceil(max(baseline.cpu_s)))))
    # Of one that waits so long that it would go over its limit, the time by the clock is told.
    waits = first.wall_s > limits_for(by_work).wall_s
    return Proposal(
        repo=repo if waits else by_work,
        asides=asides,
        summary="",
        install_note=trial.note,
        args_note="",
        baseline=baseline,
    )


def _sentence(what: str, message: str) -> str:
    """Say what went wrong by the name of the exception, which lasts."""
    name = re.match(r"\w+", message)
    return f"{what}: {name[0]}." if name else f"{what}."
