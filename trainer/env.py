"""What an Episode happens in: messages to begin with, tools to call, a reward at the end."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from pipeline.agent.schemas import Tool
from trainer.records import ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a conversation that the policy did not sample.

    Example: `Message(role="user", content="Put back `countby`.")`.
    """

    role: Literal["system", "user"]
    content: str


class PromptError(ValueError):
    """A prompt cannot be put to the policy as it is asked for, which no other try would mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an Episode came to.

    Example: `Outcome(reward=1.0, verdict="solved")`.
    """

    # None where nothing was learnt: the machine failed.
    reward: float | None
    # The environment's own word for it.
    verdict: str
    # One line: why.
    detail: str = ""
    # Unified diff of the work; empty where there is none.
    patch: str = ""
    # Label of the monitor; empty when none looked.
    monitored: str = ""


class Environment(Protocol):
    """One try's own world; its calls come one at a time, in the order they were written in."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the conversation begins with."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the policy may call."""

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out a well-formed call; one of an unknown tool or wrong arguments is no exception.

        Raises:
            Exception: the machine failed, which is never the policy's doing.
        """

    def finish(self, said: str, /) -> Outcome:
        """Say what became of it, given the policy's last message; called once, after all calls.

        Raises:
            Exception: the machine failed.
        """


class World(Protocol):
    """Opens environments, any number at a time."""

    def open(self, prompt: str, *, draw: str) -> AbstractContextManager[Environment]:
        """Open a fresh environment for one try at a prompt.

        Args:
            prompt: what it is about: the id of a Task.
            draw: what random choices of the environment are drawn from: the same text, the same
                choices.
        """
