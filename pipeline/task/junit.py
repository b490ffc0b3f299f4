"""Read pytest's own report of a run: the channel that does not pass through our recorder."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from xml.parsers import expat

from pipeline.task.record import TestOutcome

# What pytest's report cannot hold, as `_pytest.junitxml` names it.
ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Of a test case, from good to bad, by the elements in it.
VERDICTS = {"skipped": "skipped", "failure": "failed", "error": "error"}
# The n-th of equal ids, as our recorder names it.
NUMBERED = re.compile(r" #\d+$")
PASSED = frozenset({"passed", "xpassed"})


def disagreement(
    outcomes: Iterable[TestOutcome],
    second: Mapping[str, tuple[str, ...]] | None,
    *,
    half_skipped: frozenset[str] = frozenset(),
) -> str:
    """Say in a line where our recorder and pytest's report differ; empty when they agree.

    They agree when each test that one calls passed is passed in the other: how a test did not
    pass is told in more ways than the report has. Where no test was run there may be no report:
    pytest writes none when a conftest cannot be imported.

    Args:
        outcomes: of our recorder.
        second: of pytest's report.
        half_skipped: ids with a skipped subtest: the report calls them skipped.
    """
    ours: Counter[str] = Counter()
    for it in outcomes:
        ours[case_of(it.id)] += it.outcome in PASSED and it.id not in half_skipped
    if second is None:
        return "pytest's own report is missing" if ours else ""
    theirs = Counter({case: cases.count("passed") for case, cases in second.items()})
    for case in sorted(ours.keys() | theirs.keys()):
        if ours[case] != theirs[case]:
            return f"{case} passed {ours[case]} times here, {theirs[case]} in pytest's own report"
    missing = sorted(ours.keys() - second.keys())
    return f"{missing[0]} is not in pytest's own report" if missing else ""


def case_of(test: str) -> str:
    """Return how pytest's report names a test id: `a/test_b.py::C::d[e]` is `a.test_b.C::d[e]`."""
    address, bracket, parameters = NUMBERED.sub("", test).partition("[")
    names = address.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    names[-1] += bracket + parameters
    return _case(".".join(names[:-1]), ILLEGAL.sub(_spelled, names[-1]))


def _case(classname: str, name: str) -> str:
    return f"{classname}::{name}"


def _spelled(match: re.Match[str]) -> str:
    return f"#x{ord(match.group()):02X}"


def read_junit(report: bytes) -> dict[str, tuple[str, ...]] | None:
    """Return the outcomes of a report by test case; None when it is no such report.

    Code under test may have written it: no entity is expanded, no other file is read.
    """
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(report, True)  # noqa: FBT003  expat's own call
    except (expat.ExpatError, ValueError):
        return None
    return {case: tuple(outcomes) for case, outcomes in reader.cases.items()}


def _refuse(*_: object) -> None:
    raise ValueError("a report declares no document type")


class _Reader:
    """Collect the test cases of a document as it is parsed."""

    def __init__(self) -> None:
        self.cases: dict[str, list[str]] = {}
        self._case = ""
        self._outcome = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin a test case, or note what became of the one that is open."""
        if tag == "testcase":
            self._case = _case(attributes.get("classname", ""), attributes.get("name", ""))
            self._outcome = "passed"
        elif tag in VERDICTS and self._case:
            worst = max(self._outcome, VERDICTS[tag], key=["passed", *VERDICTS.values()].index)
            self._outcome = worst

    def end(self, tag: str) -> None:
        """Book the test case that ends."""
        if tag == "testcase":
            self.cases.setdefault(self._case, []).append(self._outcome)
            self._case = ""
