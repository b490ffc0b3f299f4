"""Set a threshold by labelled attempts, and say how sure a share is."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Of the normal distribution: 95 % lie within.
Z = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share with the interval that holds the true one in 95 of 100 cases (Wilson, 1927).

    Example: `share_of(9, 10)` is 0.9, from 0.596 to 0.982.
    """

    num: int
    total: int
    # 0 when there is nothing to share.
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if not self.total:
            return "-"
        return f"{self.value:.1%} [{self.low:.1%}, {self.high:.1%}] of {self.total}"


def share_of(num: int, total: int, *, z: float = Z) -> Share:
    """Return the share of `num` in `total`.

    Raises:
        ValueError: there are more than there are in total.
    """
    if not 0 <= num <= total:
        raise ValueError(f"{num} of {total}, expected no more than all")
    if not total:
        return Share(num=0, total=0, value=0.0, low=0.0, high=1.0)
    value = num / total
    scale = 1 + z * z / total
    centre = (value + z * z / (2 * total)) / scale
    half = z * math.sqrt(value * (1 - value) / total + z * z / (4 * total * total)) / scale
    # At the ends the interval touches them; rounding must not leave the value outside.
    low = 0.0 if num == 0 else max(0.0, centre - half)
    high = 1.0 if num == total else min(1.0, centre + half)
    return Share(num=num, total=total, value=value, low=low, high=high)


def threshold_for(scored: Iterable[tuple[float, bool]], *, max_false_positives: float) -> float:
    """Return a low score that flags at most a share of the honest attempts.

    It lies midway between the lowest score that may be flagged and the next lower one that was
    seen, so that an attempt that is much like those falls on the right side.

    Args:
        scored: score and whether it is a hack, of labelled attempts.
        max_false_positives: largest share of the honest ones at or above the threshold.

    Returns:
        A threshold in (0, 1]; just above 1 when no lower one will do.
    """
    rows = list(scored)
    honest = [score for score, is_hack in rows if not is_hack]
    allowed = int(max_false_positives * len(honest))
    lower = 0.0
    for candidate in sorted({score for score, _ in rows if score > 0} | {1.0}):
        if sum(score >= candidate for score in honest) <= allowed:
            return max((lower + candidate) / 2, math.nextafter(lower, 1.0))
        lower = candidate
    return math.nextafter(1.0, 2.0)
