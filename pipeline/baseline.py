"""Measure what a Snapshot's suite does when nothing is wrong: Baseline."""

import statistics
from collections.abc import Mapping

from pipeline.sandbox.protocol import Limits
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.record import Baseline, Outcome, Quarantined, QuarantineReason, TestOutcome
from pipeline.task.reject import Reject
from pipeline.task.suite import SuiteRequest, SuiteRun, lasting, run_suite
from pipeline.task.verdict import name_alarm

# Plain, another hash seed, another order: what differs between the first two is flaky, what only
# the third breaks depends on the order. A guarded run follows, as every grade is one.
RUNS = (
    SuiteRequest(hash_seed=0, keep_bytecode=True),
    SuiteRequest(hash_seed=1),
    SuiteRequest(hash_seed=2, shuffle=0),
)

# What the lines begin with that pytest adds to its usage errors.
CONFIGURED = ("  inifile: ", "  rootdir: ")

# A suite in which fewer than half of the tests pass says nothing about a deletion.
MIN_PASSING_SHARE = 0.5


def limits_for(repo: Repo) -> Limits:
    """Give a run of the suite ten times its expected time, and ten seconds to start."""
    return Limits(wall_s=10 + 10 * repo.test.wall_s, cpu_s=10 + 8 * repo.test.wall_s)


def measure_baseline(repo: Repo, *, desk: Desk) -> Baseline | Reject:
    """Run the suite four times; return the ids that always pass, and why the others do not."""
    runs: list[SuiteRun] = []
    for number in range(len(RUNS) + 1):
        request = RUNS[number] if number < len(RUNS) else guard(runs[0])
        run = run_suite(
            desk.sandbox,
            tree=desk.tree,
            bench=desk.bench,
            request=request,
            limits=limits_for(repo),
        )
        reject = refuse_run(run, stage="baseline") or (None if runs else _refuse_suite(run))
        if reject is not None:
            return reject
        runs.append(run)
    return combine(runs)


def guard(plain: SuiteRun) -> SuiteRequest:
    """Return the request of a run as graded trees have it, with the plugins of a plain one."""
    return SuiteRequest(plugins=plain.plugins, guard=True)


def refuse_run(run: SuiteRun, *, stage: str) -> Reject | None:
    """Return why a run of a whole suite cannot be used at all, if it cannot."""
    finished = run.finished
    if finished.limit is not None:
        detail = f"the suite went over its limit of {finished.limit}"
        return Reject(stage=stage, reason=finished.limit, detail=detail)
    if not run.ended or finished.exit_code not in {0, 1, 2, 5}:
        last = _last_line(finished.output)
        detail = f"pytest ended with status {finished.exit_code}, last line: {last}"
        return Reject(stage=stage, reason="aborted", detail=detail)
    return None


def _last_line(output: bytes) -> str:
    """Return the last line that says what went wrong: pytest may add where it is configured."""
    lines = output.decode("utf-8", "replace").strip().split("\n")
    saying = [it for it in lines if not it.startswith(CONFIGURED)]
    return lasting("".join(saying[-1:])[:300])


def _refuse_suite(run: SuiteRun) -> Reject | None:
    ran = [outcome for outcome in run.outcomes if outcome.outcome not in {"skipped", "xfailed"}]
    passed = sum(outcome.outcome == "passed" for outcome in ran)
    errors = [f"{path}: {message}" for path, message in run.collect_errors]
    if not run.collected and not errors:
        return Reject(stage="baseline", reason="no_tests", detail="pytest collected no test")
    if not passed or passed < MIN_PASSING_SHARE * len(ran):
        broken = [f"{key}: {value}" for key, value in run.messages.items()]
        first = lasting((errors + broken + ["every test is skipped"])[0][:300])
        detail = f"{passed} of {len(ran)} tests pass, {len(errors)} files do not collect; {first}"
        return Reject(stage="baseline", reason="red", detail=detail)
    return None


def combine(runs: list[SuiteRun]) -> Baseline:
    """Judge each id by its outcomes in the plain runs, the shuffled and, last, the guarded one."""
    tables = [run.by_id() for run in runs]
    order = list(dict.fromkeys(key for run in runs for key in run.collected))
    reasons: dict[str, QuarantineReason | None] = {
        key: _reason([_outcome(table, key) for table in tables]) for key in order
    }
    passing = tuple(key for key in order if reasons[key] is None)
    return Baseline(
        passing=passing,
        quarantined=quarantine(reasons),
        durations_s=tuple(
            statistics.median(table[key].duration_s for table in tables) for key in passing
        ),
        cpu_s=tuple(run.finished.cpu_s for run in runs),
        num_runs=len(runs),
        plugins=runs[0].plugins,
        alarms=tuple(map(name_alarm, runs[-1].alarms)),
    )


def quarantine(reasons: Mapping[str, QuarantineReason | None]) -> tuple[Quarantined, ...]:
    """Book the ids that have a reason.

    An id that differs from run to run, such as one with the time of day in it, is booked once
    without its parameters: the record must not differ.
    """
    booked = {
        (_without_parameters(key) if reason == "unstable-id" else key): reason
        for key, reason in reasons.items()
        if reason
    }
    return tuple(Quarantined(id=key, reason=reason) for key, reason in booked.items())


def _without_parameters(key: str) -> str:
    name, bracket, _ = key.partition("[")
    return f"{name}[…]" if bracket else key


def _outcome(table: dict[str, TestOutcome], key: str) -> Outcome:
    return table[key].outcome if key in table else "missing"


def _reason(outcomes: list[Outcome]) -> QuarantineReason | None:
    *plain, shuffled, guarded = outcomes
    if {*plain, shuffled} == {"passed"}:
        return None if guarded == "passed" else "guarded"
    if "missing" in outcomes:
        return "unstable-id"
    if len(set(plain)) > 1:
        return "flaky"
    if plain[0] == "passed" and shuffled != "passed":
        return "order-dependent"
    if plain[0] == "skipped":
        return "skipped"
    return "xfailed" if plain[0] in {"xfailed", "xpassed"} else "failing"
