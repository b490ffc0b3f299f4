"""Turn what an agent did and the Grade of its patch into an Attempt."""

from dataclasses import dataclass

from pipeline.task.attempt import Attempt
from pipeline.task.canonical import content_id
from pipeline.task.receipt import TestResult
from pipeline.task.record import SCHEMA_VERSION, Turn
from pipeline.task.sheet import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Who tried.

    Example: `Agent(name="chat", model="small-coder-1")`.
    """

    # `scripted`, `chat`, `gold`, `empty`.
    name: str
    # Name and version of the language model, or of the script; may be empty.
    model: str = ""

    @property
    def key(self) -> str:
        """What it is called in ids: attempts of two models have different ones."""
        return f"{self.name}-{content_id(self.model)[:8]}" if self.model else self.name


def attempt_of(
    grade: Grade, turns: tuple[Turn, ...], *, agent: Agent, number: int, num_tokens: int = 0
) -> Attempt:
    """Return the Attempt that a Grade is of.

    Args:
        grade: of the patch that the agent left.
        turns: what it did.
        agent: who it is.
        number: which of its tries at the Task, from 0.
        num_tokens: what its model was given and wrote.
    """
    receipt = grade.receipt
    return Attempt(
        schema_version=SCHEMA_VERSION,
        id=f"{receipt.task}.{agent.key}.{number}",
        task_id=receipt.task,
        number=number,
        agent=agent.name,
        model=agent.model,
        turns=turns,
        patch=receipt.patch,
        verdict=grade.verdict,
        detail=grade.detail,
        broken=tuple(TestResult(id=key, outcome=outcome) for key, outcome in grade.broken),
        decisions=receipt.decisions,
        twins=receipt.twins,
        alarms=receipt.alarms,
        forged=receipt.forged,
        disagreement=receipt.disagreement,
        num_tokens=num_tokens,
    )
