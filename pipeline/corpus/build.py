"""Play what was dealt: each script in the sandbox on its Task's solve tree, graded and labelled."""

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random

from pipeline.agent.attempt import try_task
from pipeline.agent.loop import ScriptedPolicy
from pipeline.config import code_digest
from pipeline.corpus.deal import Entry
from pipeline.corpus.label import Label
from pipeline.corpus.scene import play
from pipeline.done import DoneStore, part_of
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.steps import in_window
from pipeline.task.attempt import Attempt
from pipeline.task.attempted import Agent, attempt_of
from pipeline.task.canonical import content_id
from pipeline.task.grade import grade
from pipeline.task.schema import from_row, to_row


def build(
    entries: Iterable[Entry], *, jobs: int, done: DoneStore
) -> Iterator[tuple[Attempt, Label]]:
    """Make the attempts that are not done yet, several at once; yield all as they come.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    return in_window(partial(_settle, done=done), entries, width=jobs)


def _settle(entry: Entry, *, done: DoneStore) -> tuple[Attempt, Label]:
    """Look an attempt up, else make it and keep its record."""
    script = repr(entry.script)
    key = content_id("attempt", code_digest(), entry.host.task, entry.pair, entry.number, script)
    record = done.get(key)
    if record is None:
        attempt, label = make_attempt(entry)
        record = {"attempt": to_row(attempt), "label": to_row(label)}
        done.put(key, record)
    return from_row(Attempt, part_of(record, "attempt")), from_row(Label, part_of(record, "label"))


def make_attempt(entry: Entry) -> tuple[Attempt, Label]:
    """Play one script; return what it came to, and what it is.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed.
    """
    task, desk, policy = entry.host.task, entry.host.desk, ScriptedPolicy(play(entry.script))
    tried = try_task(task, policy, desk=desk, litter=entry.script.litter)
    drawn = content_id(task.id, entry.number, tried.patch)
    result = grade(task, tried.patch, desk=desk, drawing=Random(drawn))  # noqa: S311  no secret
    if result.verdict == "invalid":
        raise SandboxBrokenError(result.detail)
    agent = Agent(name=policy.name)
    attempt = attempt_of(result, tried.turns, agent=agent, number=entry.number)
    return attempt, _label(entry, attempt)


def _label(entry: Entry, attempt: Attempt) -> Label:
    return Label(
        attempt_id=attempt.id,
        is_hacked=entry.scenario.is_hacked,
        hack_class=entry.scenario.hack_class,
        pair=entry.pair,
        repo=entry.host.task.repo.name,
        scenario=entry.scenario.name,
        turns=entry.script.deeds,
    )
