"""What one run of a suite did, as read from its results."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.sandbox.protocol import Finished
from pipeline.task import junit
from pipeline.task.record import TestOutcome
from pipeline.task.results import read_lines
from pipeline.task.traced import SuiteTrace, read_module

# Exceptions whose messages name code.
NAMING_ERRORS = frozenset({"NameError", "ImportError", "ModuleNotFoundError", "AttributeError"})
# What differs from run to run in a message: addresses, the ids of mocks, durations.
PASSING = re.compile(r"0x[0-9a-fA-F]{4,}|id='\d+'|\b\d+\.\d+ ?s\b")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Alarm:
    """Something that cheats do and that honest code hardly ever does.

    Example: `Alarm(event="frames", place="toolz/recipes.py")`.
    """

    # `reads-test`, `frames`, `gc`, …: see `inside/guard.py`, and `inside/integrity.py`.
    event: str
    # Path of the module that did it, relative to the tree; empty when it is in none. Of
    # `integrity`, what was changed: `_pytest.runner.call_and_report`.
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """What one run of a suite did."""

    outcomes: tuple[TestOutcome, ...]
    # Ids in order of collection, after filters.
    collected: tuple[str, ...]
    # (path, first line of the error) of each file that did not collect.
    collect_errors: tuple[tuple[str, str], ...]
    # First line of the exception, by id of each test that failed or erred.
    messages: dict[str, str]
    # None unless asked for.
    trace: SuiteTrace | None
    # pytest came to its end and said so.
    ended: bool
    finished: Finished
    # Entry points (group `pytest11`) that were loaded, in order.
    plugins: tuple[str, ...] = ()
    # `pytest 9.0.2, Python 3.11.7`.
    runner: str = ""
    # Distinct and sorted; empty unless the run was guarded.
    alarms: tuple[Alarm, ...] = ()
    # Why the results pipe cannot be trusted, in a line; empty when it can.
    forged: str = ""
    # What pytest's own report says, by `classname::name` of its test cases; None when there is
    # no report, or none that can be read.
    second: Mapping[str, tuple[str, ...]] | None = None
    # Ids with a skipped subtest, which that report counts as skipped.
    half_skipped: frozenset[str] = field(default_factory=frozenset)

    def by_id(self) -> dict[str, TestOutcome]:
        """Index the outcomes by test id; of an id that is reported twice, the worse counts."""
        table: dict[str, TestOutcome] = {}
        for outcome in self.outcomes:
            if outcome.id not in table or table[outcome.id].outcome == "passed":
                table[outcome.id] = outcome
        return table

    def disagreement(self) -> str:
        """Say in a line where the two channels differ; empty when they agree."""
        return junit.disagreement(self.outcomes, self.second, half_skipped=self.half_skipped)

    def symptom(self, key: str) -> str:
        """Say how a test broke in a line that is the same each time it breaks so; else empty.

        Messages of other exceptions may hold addresses or clock times: their class must do.
        """
        outcome = self.by_id().get(key)
        exception = outcome.exception if outcome else ""
        if exception not in NAMING_ERRORS:
            return exception
        return lasting(self.messages.get(key, exception))


def lasting(message: str) -> str:
    """Return a message without what differs from run to run."""
    return PASSING.sub("…", message)


def read_run(finished: Finished, *, nonce: str) -> SuiteRun:
    """Turn the results of a job into a SuiteRun; a torn last line is a test that did not end.

    Args:
        finished: the job.
        nonce: what begins each line of the recorder.
    """
    lines, forged = read_lines(finished.results, nonce=nonce)
    tests = _of(lines, "test")
    starts, ends = _of(lines, "start"), _of(lines, "end")
    alarms = {Alarm(event=line["event"], place=line["place"]) for line in _of(lines, "alarm")}
    return SuiteRun(
        outcomes=tuple(_outcome(line) for line in tests),
        collected=tuple(name for line in _of(lines, "collected") for name in line["ids"]),
        collect_errors=tuple(
            (line["path"], _one_line(line)) for line in _of(lines, "collect_error")
        ),
        messages={line["id"]: _one_line(line) for line in tests if line["exception"]},
        trace=_trace(lines),
        ended=bool(ends),
        finished=finished,
        plugins=tuple(name for line in _of(lines, "plugins") for name in line["names"]),
        runner=starts[0]["runner"] if starts else "",
        alarms=tuple(sorted(alarms)),
        forged=forged or _wrong_status(ends, finished),
        second=None if finished.collected is None else junit.read_junit(finished.collected),
        half_skipped=frozenset(line["id"] for line in tests if line["half_skipped"]),
    )


def _of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def _wrong_status(ends: list[dict[str, Any]], finished: Finished) -> str:
    if not ends or finished.limit is not None or ends[0]["status"] == finished.exit_code:
        return ""
    return f"pytest ended with {ends[0]['status']}, its process with {finished.exit_code}"


def _outcome(line: dict[str, Any]) -> TestOutcome:
    return TestOutcome(
        id=line["id"],
        outcome=line["outcome"],
        duration_s=line["duration"],
        exception=line["exception"],
    )


def _one_line(line: dict[str, Any]) -> str:
    return f"{line['exception']}: {line['message']}".rstrip(": ")


def _trace(lines: list[dict[str, Any]]) -> SuiteTrace | None:
    ends = _of(lines, "early")
    if not ends:
        return None
    return SuiteTrace(
        modules=tuple(map(read_module, _of(lines, "marked"))),
        at_import=int(ends[0]["at_import"], 16),
        at_collection=int(ends[0]["at_collection"], 16),
        reached={line["id"]: int(line["marks"], 16) for line in _of(lines, "reached")},
    )
