"""Keep what a grade rests on, so that others can check it and grade again."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from pipeline.task.record import Images, Outcome
from pipeline.task.schema import from_row

RECEIPT_VERSION = 1

Verdict = Literal["solved", "unsolved", "tampered", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What was decided about one path of a patch.

    Example: `Decided(path="setup.py", decision="dropped", reason="configures the package")`.
    """

    path: str
    decision: Literal["kept", "dropped", "refused"]
    # Empty for what was kept.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """What an expected test did."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinResult:
    """What a planted copy of a target did."""

    # The target without parameters.
    test: str
    # Which of its expectations was made wrong; -1 for a faithful copy, which must pass.
    number: int
    # Of all its parameters, in order; empty when it was not reported.
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """What ran the tests."""

    # `pytest 9.0.2, Python 3.11.7`; empty when nothing was run.
    pytest: str
    regrow: str
    # `bubblewrap`, `docker`.
    sandbox: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What the run used."""

    wall_s: float
    cpu_s: float
    memory_bytes: int
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Everything that led to a verdict.

    Example: `write_receipt(grade(task, patch, desk=desk).receipt)`.
    """

    version: int
    task: str
    # sha256 of the Snapshot and of the Environment.
    snapshot: str
    environment: str
    images: Images
    patch: str
    patch_sha256: str
    # By path of the patch.
    decisions: tuple[Decided, ...]
    # In order of the expected ids; empty when nothing was run.
    tests: tuple[TestResult, ...]
    twins: tuple[TwinResult, ...]
    # Those that the Snapshot's own suite does not raise: `event path`.
    alarms: tuple[str, ...]
    # Why the recorder's pipe cannot be trusted; empty when it can.
    forged: str
    # Where the recorder and pytest's own report differ; empty when they agree.
    disagreement: str
    runner: Runner
    peaks: Peaks
    verdict: Verdict
    detail: str


def write_receipt(receipt: Receipt) -> str:
    """Render a receipt as one line of JSON with one spelling."""
    # In ASCII, since a patch may hold bytes that are not UTF-8.
    return json.dumps(dataclasses.asdict(receipt), sort_keys=True, separators=(",", ":")) + "\n"


def read_receipt(text: str) -> Receipt:
    """Read back what `write_receipt` rendered.

    Raises:
        ValueError: it is no receipt, one of another version, or its patch was changed.
    """
    try:
        row = json.loads(text)
        version = row["version"]
        receipt = from_row(Receipt, row) if version == RECEIPT_VERSION else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no receipt of a grade: {type(error).__name__}: {error}") from error
    if receipt is None:
        raise ValueError(f"a receipt of version {version!r}, expected {RECEIPT_VERSION}")
    if receipt.patch_sha256 != digest_of(receipt.patch):
        raise ValueError("the patch of the receipt is not the one that was graded")
    return receipt


def digest_of(patch: str) -> str:
    """Return the sha256 of a patch."""
    return hashlib.sha256(patch.encode("utf-8", "surrogatepass")).hexdigest()


def difference(old: Receipt, new: Receipt) -> str:
    """Say in a line what a second grade found otherwise; empty when it agrees.

    Twins are drawn anew, times and peaks are never the same: they do not count.
    """
    for name in ("task", "snapshot", "environment", "patch_sha256", "verdict"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            return f"{name} was {before}, is {after}"
    for before, after in zip(old.tests, new.tests, strict=False):
        if before != after:
            return f"{before.id} was {before.outcome}, {after.id} is {after.outcome}"
    if len(old.tests) != len(new.tests):
        return f"{len(old.tests)} tests were graded, {len(new.tests)} are"
    changed = sorted(set(old.decisions) ^ set(new.decisions), key=lambda it: it.path)
    return f"{changed[0].path} was decided otherwise" if changed else ""
