"""Count what a model costs, and stop before it costs more than was allowed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            num_prompt_tokens=self.num_prompt_tokens - other.num_prompt_tokens,
            num_completion_tokens=self.num_completion_tokens - other.num_completion_tokens,
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
    # What requests that are under way may take at most.
    held: Usage = field(default_factory=Usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def holding(self, most: Usage) -> Iterator[Callable[[Usage], None]]:
        """Hold what a request may take, for the time of a block; give what books what it took.

        Raises:
            BudgetError: so much is not left; the request must not be made.
        """
        with self._lock:
            self._refuse(self.spent + self.held + most)
            self.held = self.held + most
        taken: list[Usage] = []
        try:
            yield taken.append
        finally:
            with self._lock:
                self.held = self.held - most
                for it in taken:
                    self.spent = self.spent + it

    def _refuse(self, whole: Usage) -> None:
        """Raise if this were too much."""
        spent = f"{self.spent.num_tokens:,} tokens ({self.usd:.4f} US dollars) are spent"
        if self.max_tokens is not None and whole.num_tokens > self.max_tokens:
            raise BudgetError(
                f"{spent}, and with requests under way and the next one it may be"
                f" {whole.num_tokens:,}, of {self.max_tokens:,}"
            )
        if self.max_usd is not None and self._usd_of(whole) > self.max_usd:
            raise BudgetError(
                f"{spent}, and with requests under way and the next one it may be"
                f" {self._usd_of(whole):.4f} US dollars, of {self.max_usd:g}"
            )

    @property
    def usd(self) -> float:
        """US dollars that are spent."""
        return self._usd_of(self.spent)

    def _usd_of(self, usage: Usage) -> float:
        dollars = usage.num_prompt_tokens * self.usd_in + usage.num_completion_tokens * self.usd_out
        return dollars / MILLION
