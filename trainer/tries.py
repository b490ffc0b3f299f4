"""Say what is tried, and what a try may use."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from trainer.settings import Settings


class RolloutConfig(Settings):
    """What an Episode may use."""

    # Messages of the policy's.
    max_turns: PositiveInt = 50
    # Of one context, what is sampled in it included.
    max_context_tokens: PositiveInt = 16384
    # Of one message.
    max_new_tokens: PositiveInt = 1024
    # What the policy samples in all its contexts; beyond, it is cut off, and counts for nothing.
    max_episode_tokens: PositiveInt | None = None
    # Of one result, the beginning.
    max_shown_chars: PositiveInt = 20_000
    # Divides the logits; there is no top-p or top-k: what is trained is what was sampled from.
    temperature: NonNegativeFloat = 1.0
    # When the context is full: go on from a summary that the policy writes, or stop.
    on_full: Literal["summarise", "end"] = "summarise"
    # Have training choose the experts that the engine chose; for mixtures of experts.
    router_replay: bool = False
    # Environments that work at once.
    jobs: int = Field(default=2, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> "RolloutConfig":
        if self.max_new_tokens >= self.max_context_tokens:
            raise ValueError(
                f"max_new_tokens {self.max_new_tokens} of max_context_tokens"
                f" {self.max_context_tokens}; expected fewer"
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One Episode to come.

    Example: `Try(group="12-toolz-0a1b2c3d4e5f", number=0, prompt="toolz-0a1b2c3d4e5f")`.
    """

    # As in `Episode`.
    group: str
    number: int
    # What the world opens: the id of a Task.
    prompt: str
