"""Count what a model costs, and stop before it costs more than was allowed."""

import threading
from dataclasses import dataclass, field

MILLION = 1e6


class BudgetError(RuntimeError):
    """What was allowed is spent; what was done until then is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What some requests have taken.

    Example: `Usage(num_prompt_tokens=1200, num_completion_tokens=80)`.
    """

    num_prompt_tokens: int = 0
    num_completion_tokens: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens that the model was given and wrote."""
        return self.num_prompt_tokens + self.num_completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            num_prompt_tokens=self.num_prompt_tokens + other.num_prompt_tokens,
            num_completion_tokens=self.num_completion_tokens + other.num_completion_tokens,
        )


@dataclass(slots=True, kw_only=True)
class Budget:
    """What all requests of a run may cost together; any thread may spend.

    Example: `Budget(max_tokens=2_000_000, max_usd=5.0, usd_in=0.3, usd_out=1.2)`.
    """

    # None for no bound.
    max_tokens: int | None = None
    max_usd: float | None = None
    # US dollars for a million tokens that the model is given, and that it writes.
    usd_in: float = 0.0
    usd_out: float = 0.0
    spent: Usage = field(default_factory=Usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, *, at_least: int) -> None:
        """Refuse a request that takes this many tokens at least, before it is made.

        Raises:
            BudgetError: they are not left.
        """
        with self._lock:
            tokens = self.spent.num_tokens + at_least
            usd = self.usd + at_least * self.usd_in / MILLION
            if self.max_tokens is not None and tokens > self.max_tokens:
                raise BudgetError(
                    f"{self.spent.num_tokens:,} tokens are spent and the next request takes"
                    f" {at_least:,} at least, of {self.max_tokens:,}"
                )
            if self.max_usd is not None and usd > self.max_usd:
                raise BudgetError(
                    f"{self.usd:.4f} US dollars are spent and the next request takes"
                    f" {at_least:,} tokens at least, of {self.max_usd:g} US dollars"
                )

    def spend(self, usage: Usage) -> None:
        """Count what a request has taken."""
        with self._lock:
            self.spent = self.spent + usage

    @property
    def usd(self) -> float:
        """US dollars that are spent."""
        spent = self.spent
        dollars = spent.num_prompt_tokens * self.usd_in + spent.num_completion_tokens * self.usd_out
        return dollars / MILLION
