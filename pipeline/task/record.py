"""The records of a task, from a Baseline to a row of a shard; where it comes from is `origin`."""

from dataclasses import dataclass
from typing import Literal

from pipeline.task.certificate import NOT_SCANNED, Certificate
from pipeline.task.origin import Environment, Repo, Snapshot

SCHEMA_VERSION = 4

SymbolKind = Literal["function", "method", "class"]
FeatureKind = Literal[
    "function",
    "function group",
    "method",
    "method group",
    "class",
    "command",
    "option",
    "module",
    "subpackage",
    "cross-cutting",
]
Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "missing"]
TreeName = Literal["ablated", "restored"]
SentinelKind = Literal["equality", "exception", "truth"]
QuarantineReason = Literal[
    "failing",
    "flaky",
    "order-dependent",
    "guarded",
    "skipped",
    "xfailed",
    "unstable-id",
    "own-doctest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """What one run said of one test id.

    Example: `TestOutcome(id="tests/test_a.py::test_b[x y]", outcome="passed", duration_s=0.01)`.
    """

    # pytest's node id; the n-th of equal ids ends in ` #n`.
    id: str
    outcome: Outcome
    # Wall seconds of set-up, call and tear-down together.
    duration_s: float
    # Class of the exception, when there was one: `NameError`.
    exception: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A test id that no verdict rests on, and why.

    Example: `Quarantined(id="tests/test_a.py::test_now[…]", reason="unstable-id")`.
    """

    id: str
    reason: QuarantineReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the untouched Snapshot's suite does, over several runs."""

    # Ids that passed in each run, in order of collection.
    passing: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]
    # Median wall seconds of a passing id over the runs, aligned with `passing`.
    durations_s: tuple[float, ...]
    # CPU seconds of each run, children included.
    cpu_s: tuple[float, ...]
    num_runs: int
    # Entry points (group `pytest11`) that the runs loaded, in order.
    plugins: tuple[str, ...]
    # Alarms of the guarded run: `event path`.
    alarms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A named piece of code.

    Example: `Symbol(path="src/toolz/recipes.py", qualname="countby", kind="function", …)`.
    """

    # Relative to the tree, `/` between parts.
    path: str
    # Dotted name inside its module.
    qualname: str
    kind: SymbolKind
    # First line with decorators, last line; from 1.
    first_line: int
    last_line: int

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualname.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Symbols that belong together, with the tests that exist because of them.

    Example: `Feature(title="toolz.recipes.countby", kind="function", symbols=(…,), …)`.
    """

    # A name a person understands: the importable path of the main symbol, of a module.
    title: str
    # One function, or all that a package is; `cross-cutting` stands in several modules.
    kind: FeatureKind
    # The main ones first, then what goes with them; no method of a class that goes. Of an option
    # those that take it.
    symbols: tuple[Symbol, ...]
    # Top-level names besides, as `path:name`: constants, tables.
    constants: tuple[str, ...]
    # Baseline ids that need it, in order of collection: first those whose run enters the symbols,
    # in a Task those that were seen to break.
    tests: tuple[str, ...]
    # What the tests are called together: a test function, class or file.
    group: str
    # Lines of code of the symbols and arms: no docstrings, comments, blank lines.
    num_lines: int
    # Modules that the symbols stand in.
    num_modules: int
    # How much of what the tests enter is the feature's: 1 when they are about nothing else.
    exclusivity: float
    # How far the symbols share their tests: the mean share of the tests that enters a symbol.
    cohesion: float
    # Of kind `option`: the parameter, or the flag with its dashes. Else empty.
    option: str = ""
    # Calls and branches that go from functions that stay: `src/pkg/core.py:12-14`.
    arms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step of an agent: what it thought, the tool it called, what came back."""

    # Why, in a sentence.
    thought: str
    tool: str
    # JSON object.
    arguments: str
    # What the tool printed, capped.
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The patch that removes a Feature with its seams."""

    # Unified diff from the Snapshot to the ablated tree, tests' imports included.
    patch: str
    # Unified diff from the ablated tree back, without protected files (tests, their configuration).
    gold_patch: str
    # Paths in `patch`.
    paths: tuple[str, ...]
    # Names that went with the symbols: helpers, imports, `__all__` entries, as `path:name`.
    seams: tuple[str, ...]
    num_removed_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """Counts of one validating run; the proof is the per-id lists of the Evidence."""

    # Which tree the suite ran on.
    tree: TreeName
    num_passed: int
    num_failed: int
    num_error: int
    # Baseline ids that the run did not report.
    num_missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailToPass:
    """A target test: passes on the Snapshot, does not without the Feature."""

    id: str
    # How it showed on the ablated tree.
    ablated: Outcome
    # What it says there: `NameError: name 'countby' is not defined`; empty when the id is missing.
    symptom: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was observed on the ablated and the restored tree, id by id."""

    fail_to_pass: tuple[FailToPass, ...]
    pass_to_pass: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]
    runs: tuple[TestRun, ...]
    # Small mistakes that were made in the deleted code, one at a time; 0 where none could be.
    num_mutants: int = 0
    # Those that a target notices. Some of the others mean the same as the code, so few are no flaw.
    num_killed: int = 0
    # The whole suite ran without several Features at once; each was confirmed by its targets alone.
    pooled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinel:
    """A twin of a target test that must fail: the same calls with a wrong expectation.

    Example: `Sentinel(test="tests/test_a.py::test_b", number=0, kind="equality")`.
    """

    # The target without parameters.
    test: str
    # Which of the expectations of the test function is wrong, in order, from 0.
    number: int
    # What the expectation is: an `==` of an assertion, a `raises`, the truth of an assertion.
    kind: SentinelKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What a grade rests on besides the Evidence; all of it was tried on the Snapshot."""

    # Entry points (group `pytest11`) that the Baseline's runs loaded, in order.
    plugins: tuple[str, ...]
    # Alarms that the Snapshot's own suite raises: `event path`.
    alarms: tuple[str, ...]
    # Targets that a solver is not shown, by id: of test functions that are taken out of their
    # modules, and of parameters that are taken out of `shortened` ones.
    hidden: tuple[str, ...]
    # Targets without parameters that a solver is shown the first half of.
    shortened: tuple[str, ...]
    # Twins that fail on the Snapshot; a run draws from them and gives them random names.
    sentinels: tuple[Sentinel, ...]
    # Targets without parameters whose copies under other names pass on the Snapshot.
    clones: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Container images of a Task, by the engine's digest of each; empty texts without an engine."""

    environment: str = ""
    # The Environment with what a solver sees: ablated source, visible tests.
    solve: str = ""
    # The Environment with ablated source and all tests.
    grade: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One wording of the request."""

    # Template it came from: `specification`, `bug_report`.
    style: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who made the task, from what."""

    # Version of Regrow.
    regrow: str
    seed: int
    # `scripted`.
    agent: str
    # sha256 of the transcript of the deletion, under `transcripts/`.
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row of a shard: everything an agent, a grader and an auditor need."""

    schema_version: int
    # `<repo>-<first 12 hex digits of the sha256 of snapshot, deletion and targets>`.
    id: str
    repo: Repo
    snapshot: Snapshot
    environment: Environment
    feature: Feature
    deletion: Deletion
    evidence: Evidence
    grading: Grading
    images: Images
    instructions: tuple[Instruction, ...]
    provenance: Provenance
    # That a solver cannot read the answer.
    leaks: Certificate = NOT_SCANNED
