from typing import get_args

import numpy as np
import pytest

from trainer.muon.coefficients import COEFFICIENTS, CoefficientsName


def ends(name: CoefficientsName, *, start: float) -> tuple[float, float]:
    """Return the least and the largest of where singular values from a start up to 1 end."""
    values = np.geomspace(start, 1, 20_000)
    for a, b, c in COEFFICIENTS[name]:
        values = a * values + b * values**3 + c * values**5
    return values.min(), values.max()


def test_each_name_has_its_list() -> None:
    assert {*COEFFICIENTS} == {*get_args(CoefficientsName)}
    assert {name: len(steps) for name, steps in COEFFICIENTS.items()} == {
        "jordan": 5,
        "polar_express": 5,
        "deepseek_v4": 10,
    }


@pytest.mark.parametrize(
    ("name", "start", "low", "high"),
    [
        ("jordan", 5e-3, 0.67, 1.21),
        ("polar_express", 1e-3, 0.85, 1.15),
        ("deepseek_v4", 1e-3, 0.99, 1.01),
    ],
)
def test_singular_values_end_where_the_list_promises(
    name: CoefficientsName, start: float, low: float, high: float
) -> None:
    least, largest = ends(name, start=start)
    assert low < least < largest < high


def test_five_steps_of_polar_express_lift_small_singular_values_most() -> None:
    def lifted(name: CoefficientsName) -> float:
        return ends(name, start=1e-3)[0]

    assert lifted("polar_express") > 1.5 * lifted("jordan")
