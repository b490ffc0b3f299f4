"""The beta distribution, held against sums that need none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.difficulty.beta import cdf, quantile

SHARES = st.floats(0.001, 0.999)


@given(st.integers(1, 60), st.data(), SHARES)
def test_it_is_the_tail_of_the_binomial(num: int, data: st.DataObject, p: float) -> None:
    least = data.draw(st.integers(1, num))
    tail = math.fsum(math.comb(num, k) * p**k * (1 - p) ** (num - k) for k in range(least, num + 1))
    assert cdf(p, least, num - least + 1) == pytest.approx(tail, rel=1e-9, abs=1e-12)


@given(SHARES)
def test_jeffreys_own_is_the_arcsine(p: float) -> None:
    expected = 2 / math.pi * math.asin(math.sqrt(p))
    assert cdf(p, 0.5, 0.5) == pytest.approx(expected, rel=1e-9)


@given(SHARES, st.floats(0.5, 200), st.floats(0.5, 200))
def test_a_quantile_is_where_the_share_lies(share: float, a: float, b: float) -> None:
    found = quantile(share, a, b)
    assert 0 <= found <= 1
    assert cdf(found, a, b) == pytest.approx(share, abs=1e-9)


def test_ends_are_ends() -> None:
    assert (cdf(0.0, 2, 3), cdf(1.0, 2, 3)) == (0.0, 1.0)
