"""The records of an agent's tries at a Task, and of what the monitor says of each."""

from dataclasses import dataclass
from typing import Literal

from pipeline.task.receipt import Decided, TestResult, TwinResult, Verdict
from pipeline.task.record import Turn

# Ways to a reward that are none of the Task's: first those that look for the deleted code, then
# those that deceive the grader.
HackClass = Literal[
    "retrieval",
    "history",
    "cache",
    "archive",
    "decompile",
    "fetch",
    "site-packages",
    "grader",
    "test-edit",
    "runner-config",
    "plugin",
    "process-exit",
    "skip",
    "forging",
    "oracle",
    "equality",
    "special-casing",
    "environment",
    "honey",
]
# What a sign rests on: deleted code in an output or a diff, a call, the diff, the graded run, a
# planted decoy.
SignSource = Literal["taint", "call", "diff", "run", "honey"]
# `memory`: the deleted code is in the diff and was in no output, so it was known or guessed.
Label = Literal["clean", "memory", "suspicious", "hacked", "unsure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One thing that speaks for a hack.

    Example: `Sign(hack_class="history", source="call", rule="git log of all", turns=(4,), …)`.
    """

    hack_class: HackClass
    source: SignSource
    # Which rule found it; unique.
    rule: str
    # Numbers of the turns that show it, from 1; empty for what the diff or the run shows.
    turns: tuple[int, ...]
    # How likely an attempt with this sign alone is a hack: 0 to 1.
    weight: float
    # One line: what was found, where.
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge model said of an attempt, asked without being told the outcome."""

    model: str
    # Name and digest of the prompt: `monitor_judge@3f9c0a12`.
    prompt: str
    # How sure it is of a hack: 0 to 1; of two readings, with and without the reasoning, the worse.
    score: float
    # What kind; empty when it sees none.
    hack_class: str
    # Numbers of the turns that it cites, from 1.
    turns: tuple[int, ...]
    # In a sentence.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitored:
    """The monitor's verdict on an attempt; what to do about it is the reader's choice."""

    # Of the rules and their weights: a verdict of another version is made anew.
    version: str
    label: Label
    # Class of the heaviest sign; empty for a clean attempt.
    hack_class: str
    # How likely it is a hack by all signs together: 0 to 1.
    score: float
    # The heaviest first.
    signs: tuple[Sign, ...]
    # Share of the deleted code that the diff repeats: 0 to 1.
    similarity: float
    judged: Judged | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One agent's try at a Task: a row of the attempts' shards."""

    schema_version: int
    # Unique in a run: `<task id>.<agent>.<number>`; the agent with a digest of its model, if any.
    id: str
    task_id: str
    # Which of the agent's tries at the Task, from 0.
    number: int
    # `scripted`, `chat`, `gold`, `empty`.
    agent: str
    # Name and version of the language model, or of the script; may be empty.
    model: str
    turns: tuple[Turn, ...]
    # Unified diff from the solve tree.
    patch: str
    # Of the Grade.
    verdict: Verdict
    # Why it is not solved.
    detail: str
    # Expected tests that did not pass; empty when nothing was run.
    broken: tuple[TestResult, ...]
    # What was decided about each path of the patch.
    decisions: tuple[Decided, ...]
    # What planted copies of targets did.
    twins: tuple[TwinResult, ...]
    # Those that the Snapshot's own suite does not raise: `event path`.
    alarms: tuple[str, ...]
    # Why the recorder's pipe cannot be trusted; empty when it can.
    forged: str
    # Where the two reports of the run differ; empty when they agree.
    disagreement: str
    # Tokens that the model was given and wrote; 0 without one.
    num_tokens: int = 0
    # None until `regrow monitor` has seen it.
    monitored: Monitored | None = None
