from math import sqrt
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from trainer.muon.apply import apply_unit, scale_of, update_of
from trainer.muon.config import MomentumForm, MuonConfig

SHAPE = (13, 67)


def config(**given: object) -> MuonConfig:
    return MuonConfig.model_validate(given)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("form", get_args(MomentumForm))
def test_momentum_is_what_the_formula_says_over_three_steps(form: str, nesterov: bool) -> None:
    chosen = config(momentum=0.9, momentum_form=form, nesterov=nesterov)
    new = 1.0 if form == "sum" else 0.1
    buffer, expected = torch.zeros(SHAPE), torch.zeros(SHAPE).double()
    for step in range(3):
        grad = draw(*SHAPE, seed=step)
        found = update_of(grad, buffer, chosen)
        expected = 0.9 * expected + new * grad.double()
        update = 0.9 * expected + new * grad.double() if nesterov else expected
        assert torch.allclose(found.double(), update, atol=1e-6)
        assert torch.allclose(buffer.double(), expected, atol=1e-6)


@pytest.mark.parametrize("nesterov", [True, False])
def test_both_forms_of_momentum_point_the_same_way(nesterov: bool) -> None:
    buffers = torch.zeros(2, *SHAPE)
    for step in range(3):
        grad = draw(*SHAPE, seed=step)
        one, other = (
            update_of(grad, buffer, config(momentum=0.9, momentum_form=form, nesterov=nesterov))
            for form, buffer in zip(get_args(MomentumForm), buffers, strict=True)
        )
        assert torch.allclose(one * 0.1, other, atol=1e-6)


def test_a_result_can_be_put_where_the_caller_wants_it() -> None:
    for form in get_args(MomentumForm):
        out, grad = torch.empty(SHAPE), draw(*SHAPE, seed=0)
        found = update_of(grad, torch.zeros(SHAPE), config(momentum_form=form), out=out)
        assert found.data_ptr() == out.data_ptr()
        assert torch.equal(out, update_of(grad, torch.zeros(SHAPE), config(momentum_form=form)))


def test_gradients_in_bf16_are_added_in_fp32() -> None:
    grad, buffer = draw(*SHAPE, seed=0).bfloat16(), torch.zeros(SHAPE)
    found = update_of(grad, buffer, config())
    assert found.dtype == buffer.dtype == torch.float32
    assert torch.equal(found, update_of(grad.float(), torch.zeros(SHAPE), config()))


@pytest.mark.parametrize(
    ("scale", "shape", "factor"),
    [
        ("match_rms_adamw", (100, 25), 2.0),
        ("match_rms_adamw", (25, 100), 2.0),
        ("original", (100, 25), 2.0),
        ("original", (25, 100), 1.0),
        ("spectral_unclamped", (100, 25), 2.0),
        ("spectral_unclamped", (25, 100), 0.5),
    ],
)
def test_a_scale_is_that_of_the_shape(scale: str, shape: tuple[int, int], factor: float) -> None:
    assert scale_of(shape, config(scale=scale)) == pytest.approx(factor)


def test_a_head_steps_no_further_for_being_part_of_a_large_projection() -> None:
    head, projection = (192, 1536), (64 * 192, 1536)
    ratio = scale_of(projection, config()) / scale_of(head, config())
    assert ratio == pytest.approx(sqrt(8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_decay_takes_the_rate_as_it_is_and_the_step_the_scaled_one(dtype: torch.dtype) -> None:
    weights = draw(4, 16, seed=0).to(dtype)
    step = draw(4, 16, seed=1).bfloat16()
    expected = weights.double() * (1 - 0.1 * 0.5) - 0.1 * 0.2 * 4 * step.double()
    apply_unit(weights, step, (4, 16), 0.1, config(weight_decay=0.5))
    assert weights.dtype == dtype
    assert torch.allclose(weights.double(), expected.to(dtype).double(), atol=1e-6, rtol=1e-2)


@settings(deadline=None, max_examples=30)
@given(
    rows=st.tuples(st.integers(0, 12), st.integers(1, 13)),
    cols=st.tuples(st.integers(0, 66), st.integers(1, 67)),
    form=st.sampled_from(get_args(MomentumForm)),
    dtype=st.sampled_from((torch.float32, torch.bfloat16)),
)
def test_a_fragment_alone_gets_the_bits_it_gets_as_part_of_the_whole(
    rows: tuple[int, int], cols: tuple[int, int], form: MomentumForm, dtype: torch.dtype
) -> None:
    place = (slice(rows[0], sum(rows)), slice(cols[0], sum(cols)))
    chosen = config(momentum_form=form, weight_decay=0.1)
    grad, buffer, step = (draw(*SHAPE, seed=seed) for seed in range(3))
    weights, step = draw(*SHAPE, seed=3).to(dtype), step.bfloat16()
    of_fragment, fragment = buffer[place].clone(), weights[place].clone()
    update = update_of(grad[place].clone(), of_fragment, chosen)
    apply_unit(fragment, step[place].clone(), SHAPE, 0.01, chosen)
    whole = update_of(grad, buffer, chosen)
    apply_unit(weights, step, SHAPE, 0.01, chosen)
    assert torch.equal(update, whole[place])
    assert torch.equal(of_fragment, buffer[place])
    assert torch.equal(fragment, weights[place])


@pytest.mark.parametrize(
    "wrong", [{"scale": "rms"}, {"momentum": 1.0}, {"lr": -1}, {"momentun": 0.9}, {"heads": 1}]
)
def test_a_choice_that_does_not_exist_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        config(**wrong)
