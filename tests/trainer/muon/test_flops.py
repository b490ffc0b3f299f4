import subprocess
import sys

import pytest

from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.flops import flops, form_of

TERA = 10**12


def config(**given: object) -> NewtonSchulzConfig:
    return NewtonSchulzConfig.model_validate(given)


def test_plain_and_gram_forms_cost_what_the_formulae_say() -> None:
    m, n = 2048, 7168
    plain = 5 * (4 * m * m * n + 2 * m**3)
    assert flops(m, n, config=config(form="plain")) == flops(n, m, config=config()) == plain
    assert flops(m, n, config=config(form="gram")) == 8 * m * m * n + 28 * m**3
    # Of one expert's matrix of Kimi K2: 46.8k operations a weight.
    assert plain / (m * n) == pytest.approx(46.8e3, rel=1e-3)


def test_ten_steps_cost_twice_five() -> None:
    five, ten = config(form="plain"), config(form="plain", coefficients="deepseek_v4")
    assert flops(64, 128, config=ten) == 2 * flops(64, 128, config=five)


@pytest.mark.parametrize(
    ("shape", "dtype", "form"),
    [
        ((64, 512), "bfloat16", "folded"),
        ((64, 512), "float16", "gram"),
        ((512, 64), "float16", "gram"),
        ((64, 95), "float32", "folded"),
        ((64, 97), "float32", "gram"),
    ],
)
def test_the_gram_form_is_chosen_for_long_matrices_and_never_in_bf16(
    shape: tuple[int, int], dtype: str, form: str
) -> None:
    assert form_of(*shape, config=config(dtype=dtype)) == form
    assert form_of(*shape, config=config(dtype=dtype, form="plain")) == "plain"


def test_what_plans_and_counts_needs_no_torch() -> None:
    names = "flops, units, config, coefficients, cuts"
    said = f"import sys; from trainer.muon import {names}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
