"""Read what an Episode's runs of tests said."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.feedback.acts import Act

# Programs that run tests; programs that might.
_SURE = re.compile(r"\bpy\.?test\b|\bunittest\b|\btox\b|\bnox\b|\bnose2\b|\bmake (?:test|check)\b")
_MAYBE = re.compile(r"\bpython[\d.]*\b|\bmake\b|\bhatch\b|\bcoverage\b|\w*test\w*|\buv\b|\.sh\b")
# Its last line, as pytest and unittest write it.
_SUMMARY = re.compile(
    r"^=*\s*(\d+ (?:passed|failed|errors?|skipped|deselected)\b.*?) in \d[\d.:]*|^FAILED \((.+)\)$"
    r"|^(OK)(?: \(.*\))?$",
    re.MULTILINE,
)
_COUNTED = re.compile(r"\b(\d+) (?:failed|errors?)\b|\b(?:failures|errors)=(\d+)")
_OF_TOOL = re.compile(
    r"^(?:FAILED|ERROR) (?P<id>.+?): |^DOES NOT COLLECT (?P<path>.+?): ", re.MULTILINE
)
_OF_PYTEST = re.compile(r"^(?:FAILED|ERROR) (?P<id>\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """What a run of tests said.

    Example: `TestRun(act=…, num_failed=1, failing=frozenset({"tests/test_a.py::test_b"}))`.
    """

    act: Act
    # Errors included.
    num_failed: int
    # Ids and paths, as far as the text names them.
    failing: frozenset[str]


def runs_in(acts: tuple[Act, ...]) -> Iterator[TestRun]:
    """Yield the runs of tests whose end can be read, in order."""
    for act in acts:
        if act.name == "run_tests" and act.status == "done" and not is_collection(act):
            head = act.output.partition("\n")[0]
            failing = frozenset(it["id"] or it["path"] for it in _OF_TOOL.finditer(act.output))
            yield TestRun(act=act, num_failed=_count(head) or len(failing), failing=failing)
        elif act.status in {"done", "failed"} and _SURE.search(act.command):
            failing = frozenset(it["id"] for it in _OF_PYTEST.finditer(act.output))
            if lines := [next(filter(None, it)) for it in _SUMMARY.findall(act.output)]:
                yield TestRun(act=act, num_failed=_count(lines[-1]), failing=failing)


def may_run_tests(act: Act) -> bool:
    """Tell whether a call may have run tests, however it ended."""
    if act.name == "run_tests":
        return act.status != "refused" and not is_collection(act)
    return bool(_SURE.search(act.command) or _MAYBE.search(act.command))


def is_collection(act: Act) -> bool:
    """Tell whether tests are only listed."""
    return bool(act.arguments.get("collect_only"))


def _count(line: str) -> int:
    return sum(int(one or other) for one, other in _COUNTED.findall(line))
