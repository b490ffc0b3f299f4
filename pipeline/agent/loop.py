"""Let a policy use a workbench turn by turn, and keep the transcript."""

import json
from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from pipeline.agent.tools import Answer, Call, Workbench
from pipeline.task.canonical import canonical_json
from pipeline.task.record import Turn

MAX_OUTPUT_CHARS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A policy's last word.

    Example: `Done(reason="", detail="")` for success.
    """

    # Empty when the work is done, else a reason from the stage's vocabulary.
    reason: str
    detail: str


class Policy(Protocol):
    """Decides what to do next."""

    name: str

    def act(self, answer: Answer | None) -> Call | Done:
        """Return the next call, given what the last one gave back (None at the start)."""


class ScriptedPolicy:
    """Owns a generator that yields calls, is sent answers, and returns its last word."""

    name = "scripted"

    def __init__(self, script: Generator[Call, Answer, Done]) -> None:
        self._script = script

    def act(self, answer: Answer | None) -> Call | Done:
        """Resume the script with the answer."""
        try:
            return next(self._script) if answer is None else self._script.send(answer)
        except StopIteration as stop:
            last: Done = stop.value
            return last


def run_agent(
    policy: Policy, workbench: Workbench, *, max_turns: int, max_shown_chars: int | None = None
) -> tuple[Done, tuple[Turn, ...]]:
    """Run a policy until it is done or out of turns; return its last word and the transcript.

    Args:
        policy: decides.
        workbench: carries out.
        max_turns: calls that it may make.
        max_shown_chars: of an output that the policy gets to see, all of which the transcript
            keeps; by default it sees all, and the beginning is kept.
    """
    turns: list[Turn] = []
    answer: Answer | None = None
    for _ in range(max_turns):
        step = policy.act(answer)
        if isinstance(step, Done):
            return step, tuple(turns)
        answer = workbench.use(step)
        kept = replace(answer, output=_cut(answer.output, max_shown_chars or MAX_OUTPUT_CHARS))
        turns.append(_turn(step, kept))
        if max_shown_chars is not None:
            answer = kept
    return Done(reason="out_of_turns", detail=f"not done after {max_turns} turns"), tuple(turns)


def _turn(call: Call, answer: Answer) -> Turn:
    return Turn(
        thought=call.thought,
        tool=call.tool,
        arguments=canonical_json(call.arguments),
        output=answer.output,
    )


def _cut(output: str, max_chars: int) -> str:
    if len(output) <= max_chars:
        return output
    return f"{output[:max_chars]}\n… {len(output) - max_chars} more characters"


def transcript_lines(turns: Iterable[Turn]) -> bytes:
    """Render a transcript as JSON lines, one a turn."""
    lines = (canonical_json(turn) for turn in turns)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def read_transcript(data: bytes) -> tuple[Turn, ...]:
    """Read back what `transcript_lines` rendered."""
    return tuple(Turn(**json.loads(line)) for line in data.decode().splitlines() if line)
