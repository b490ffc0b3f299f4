"""The records of a bench: claims with their figures, and the table behind them."""

import os
import platform
from dataclasses import asdict, dataclass


class NotMeasuredError(RuntimeError):
    """A bench cannot measure; in one line, why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A figure that was measured, against the bar it must reach.

    Example: `Claim(claim="gold patches that solve", figure=1.0, bar=">= 1.0", holds=True)`.
    """

    claim: str
    figure: float
    bar: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a bench measured."""

    bench: str
    claims: tuple[Claim, ...]
    columns: tuple[str, ...]
    # One cell a column.
    rows: tuple[tuple[object, ...], ...]

    def to_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "bench": self.bench,
            "machine": machine(),
            "claims": [asdict(claim) for claim in self.claims],
            "table": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
        }


def at_least(claim: str, figure: float, bar: float) -> Claim:
    """Return a claim that holds from the bar on."""
    return Claim(claim=claim, figure=figure, bar=f">= {bar:g}", holds=figure >= bar)


def at_most(claim: str, figure: float, bar: float) -> Claim:
    """Return a claim that holds up to the bar."""
    return Claim(claim=claim, figure=figure, bar=f"<= {bar:g}", holds=figure <= bar)


def machine() -> dict[str, object]:
    """Describe the machine that the figures are from."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
