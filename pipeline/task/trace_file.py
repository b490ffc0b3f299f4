"""Keep what a traced run saw in a file, so that nobody has to run it again."""

import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.task.files import write_whole
from pipeline.task.traced import SuiteTrace, read_module, write_module


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSuite:
    """A traced run of a suite that came to its end.

    Example: `TracedSuite(trace=SuiteTrace(…), passed=frozenset({"test_a.py::test"}), cpu_s=1.2)`.
    """

    trace: SuiteTrace
    # Ids that passed.
    passed: frozenset[str]
    # CPU seconds of the run, children included.
    cpu_s: float


def write_trace(path: Path, traced: TracedSuite) -> None:
    """Replace the file at `path` by a trace, compressed to some tens of bytes a test.

    Raises:
        OSError: the disk is full or broken.
    """
    trace = traced.trace
    value = {
        "modules": [write_module(module) for module in trace.modules],
        "at_import": f"{trace.at_import:x}",
        "at_collection": f"{trace.at_collection:x}",
        "reached": {key: f"{marks:x}" for key, marks in trace.reached.items()},
        "failed": sorted(trace.reached.keys() - traced.passed),
        "cpu_s": traced.cpu_s,
    }
    text = json.dumps(value, separators=(",", ":"))
    write_whole(path, lzma.compress(text.encode("ascii")))


def read_trace(path: Path) -> TracedSuite | None:
    """Return the trace in a file; None when there is none, or no whole one."""
    try:
        return _traced(json.loads(lzma.decompress(path.read_bytes())))
    except (FileNotFoundError, EOFError, lzma.LZMAError, LookupError, TypeError, ValueError):
        return None


def _traced(value: dict[str, Any]) -> TracedSuite:
    reached = {key: int(marks, 16) for key, marks in value["reached"].items()}
    return TracedSuite(
        trace=SuiteTrace(
            modules=tuple(map(read_module, value["modules"])),
            at_import=int(value["at_import"], 16),
            at_collection=int(value["at_collection"], 16),
            reached=reached,
        ),
        passed=frozenset(reached.keys() - set(value["failed"])),
        cpu_s=value["cpu_s"],
    )
