"""The beta distribution: what is known of a probability after some tries."""

from math import exp, lgamma, log, log1p

# Of the continued fraction, and of halvings of an interval.
_MAX_TERMS, _MAX_HALVINGS = 400, 200
_EPS = 1e-15
_TINY = 1e-250


def cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b).

    By the continued fraction of DLMF 8.17.22, evaluated as Lentz does.

    Example:
        >>> round(cdf(0.5, 2.0, 3.0), 12)
        0.6875
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    # The fraction converges fast on the near side of the mean.
    if x > (a + 1) / (a + b + 2):
        return 1 - cdf(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    # Its first numerator is 1.
    value, c, d = 1.0, 1 / _TINY, 1.0
    for number in range(1, _MAX_TERMS):
        half, is_odd = divmod(number, 2)
        term = -(a + half) * (a + b + half) * x if is_odd else half * (b - half) * x
        term /= (a + number - 1) * (a + number)
        d = 1 / ((1 + term * d) or _TINY)
        c = (1 + term / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < _EPS:
            break
    return value


def quantile(share: float, a: float, b: float) -> float:
    """Return the probability below which a share of the distribution lies.

    Example:
        >>> round(quantile(0.5, 1.0, 1.0), 9)
        0.5
    """
    low, high = 0.0, 1.0
    for _ in range(_MAX_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if cdf(middle, a, b) < share else (low, middle)
    return (low + high) / 2
