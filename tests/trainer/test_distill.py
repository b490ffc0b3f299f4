import math
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.distill import (
    DistillConfig,
    disagrees,
    kl_rows,
    negative_rows,
    trust_weights,
)

torch.set_num_threads(1)

DIVERGENCES = ["reverse", "forward", "jsd"]
EXACT = {"clip": None}


def rows(num: int, *, size: int = 5, seed: int = 0, dtype: Any = torch.float64) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(num, size, generator=draw, dtype=dtype)


def brute_force(p: list[float], q: list[float], *, kind: str) -> float:
    """The definition, entry by entry."""
    if kind == "jsd":
        m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        return (brute_force(p, m, kind="reverse") + brute_force(q, m, kind="reverse")) / 2
    if kind == "forward":
        p, q = q, p
    return sum(a * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))


def coarse(p: list[float], kept: list[int]) -> list[float]:
    return [p[token] for token in kept] + [sum(p) - sum(p[token] for token in kept)]


def gradient(logits_NV: Tensor, teacher_NV: Tensor, **choices: Any) -> Tensor:
    """Return the gradient by the student's logits of the sum over rows."""
    ids_N = choices.pop("ids_N", None)
    logits_NV = logits_NV.clone().requires_grad_()
    found_N = kl_rows(
        logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(**choices), ids_N=ids_N
    )
    found_N.sum().backward()
    assert logits_NV.grad is not None
    return logits_NV.grad


@pytest.mark.parametrize("kind", DIVERGENCES)
def test_the_divergence_is_its_definition_on_a_vocabulary_of_five(kind: str) -> None:
    student_NV, teacher_NV = (rows(40, seed=seed).log_softmax(-1) for seed in (0, 1))
    found_N = kl_rows(student_NV, teacher_NV, config=DistillConfig(divergence=kind, **EXACT))
    expected = [
        brute_force(p, q, kind=kind)
        for p, q in zip(student_NV.exp().tolist(), teacher_NV.exp().tolist(), strict=True)
    ]
    assert found_N.tolist() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("top_k", [1, 2, 3, 4, 9])
def test_top_k_and_a_tail_is_the_definition_on_the_coarser_vocabulary(
    kind: str, top_k: int
) -> None:
    student_NV, teacher_NV = (rows(40, seed=seed).log_softmax(-1) for seed in (0, 1))
    config = DistillConfig(divergence=kind, support="topk", top_k=top_k, **EXACT)
    found_N = kl_rows(student_NV, teacher_NV, config=config)
    expected = []
    for p, q in zip(student_NV.exp().tolist(), teacher_NV.exp().tolist(), strict=True):
        kept = sorted(range(5), key=lambda token, p=p: -p[token])[: min(top_k, 4)]
        expected.append(brute_force(coarse(p, kept), coarse(q, kept), kind=kind))
    assert found_N.tolist() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("support", ["full", "topk"])
def test_the_gradient_is_that_of_the_definition(kind: str, support: str) -> None:
    logits_NV, teacher_NV = rows(3), rows(3, seed=1).log_softmax(-1)
    choices = {"divergence": kind, "support": support, "top_k": 2, **EXACT}
    found_NV = gradient(logits_NV, teacher_NV, **choices)
    step = 1e-6
    for row, token in product(range(3), range(5)):
        moved = [logits_NV.clone(), logits_NV.clone()]
        moved[0][row, token] += step
        moved[1][row, token] -= step
        up, down = (
            kl_rows(it.log_softmax(-1), teacher_NV, config=DistillConfig(**choices)).sum().item()
            for it in moved
        )
        assert found_NV[row, token].item() == pytest.approx((up - down) / 2 / step, abs=1e-7)


def test_the_sampled_token_gives_the_reverse_divergence_in_expectation() -> None:
    logits_NV, teacher_NV = rows(4), rows(4, seed=1).log_softmax(-1)
    p_NV = logits_NV.softmax(-1)
    value, slope_NV = torch.zeros(4, dtype=torch.float64), torch.zeros_like(p_NV)
    for token in range(5):
        ids_N = torch.full((4,), token)
        choices = {"support": "sampled", **EXACT}
        found_N = kl_rows(
            logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(**choices), ids_N=ids_N
        )
        value += p_NV[:, token] * found_N
        slope_NV += p_NV[:, token, None] * gradient(logits_NV, teacher_NV, ids_N=ids_N, **choices)
    exact_N = kl_rows(logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(**EXACT))
    torch.testing.assert_close(value, exact_N, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        slope_NV, gradient(logits_NV, teacher_NV, **EXACT), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("support", ["full", "topk", "sampled"])
@pytest.mark.parametrize("size", [5, 1000])
def test_equal_rows_give_exactly_zero_and_a_gradient_of_exactly_zero(
    kind: str, support: str, size: int
) -> None:
    choices: dict[str, Any] = {"divergence": "reverse" if support == "sampled" else kind}
    choices |= {"support": support, "top_k": 20}
    logits_NV = rows(30, size=size, dtype=torch.float32)
    teacher_NV = logits_NV.log_softmax(-1)
    ids_N = torch.arange(30) % size
    found_N = kl_rows(teacher_NV, teacher_NV, config=DistillConfig(**choices), ids_N=ids_N)
    assert torch.equal(found_N, torch.zeros(30))
    found_NV = gradient(logits_NV, teacher_NV, ids_N=ids_N, **choices)
    assert torch.equal(found_NV, torch.zeros(30, size))


@pytest.mark.parametrize("kind", DIVERGENCES)
@pytest.mark.parametrize("support", ["full", "topk"])
def test_rows_that_exclude_each_other_give_finite_numbers(kind: str, support: str) -> None:
    logits_NV = torch.tensor([[0.0, 300.0, -300.0], [300.0, 0.0, -300.0]])
    teacher_NV = logits_NV.flip(0).log_softmax(-1)
    choices = {"divergence": kind, "support": support, "top_k": 2}
    found_N = kl_rows(logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(**choices))
    assert torch.isfinite(found_N).all()
    assert torch.isfinite(gradient(logits_NV, teacher_NV, **choices)).all()


def test_the_teacher_gets_no_gradient() -> None:
    teacher_NV = rows(3, seed=1).requires_grad_()
    student_NV = rows(3).requires_grad_()
    kl_rows(student_NV.log_softmax(-1), teacher_NV.log_softmax(-1)).sum().backward()
    assert teacher_NV.grad is None


def test_the_sampled_token_is_always_in_the_support() -> None:
    """A likely token of the teacher that is no likely one of the student would else be unseen."""
    student_NV = torch.tensor([[9.0, 8.0, 0.0, 0.0, 0.0]]).log_softmax(-1)
    teacher_NV = torch.tensor([[9.0, 8.0, 0.0, -9.0, 0.0]]).log_softmax(-1)
    config = DistillConfig(support="topk", top_k=2, divergence="reverse")
    without = kl_rows(student_NV, teacher_NV, config=config)
    with_it = kl_rows(student_NV, teacher_NV, config=config, ids_N=torch.tensor([3]))
    assert with_it > 1.5 * without


def test_a_token_over_the_clip_counts_the_clip_and_is_pulled_the_same_way() -> None:
    logits_NV = torch.tensor([[9.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    teacher_NV = torch.tensor([[0.0, 9.0, 0.0], [0.0, 0.1, 0.0]]).log_softmax(-1)
    free_N = kl_rows(logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(clip=None))
    clipped_N = kl_rows(logits_NV.log_softmax(-1), teacher_NV, config=DistillConfig(clip=2.0))
    assert clipped_N.tolist() == [2.0, free_N[1].item()]
    free_NV = gradient(logits_NV, teacher_NV, clip=None)
    clipped_NV = gradient(logits_NV, teacher_NV, clip=2.0)
    torch.testing.assert_close(clipped_NV[0], free_NV[0] * 2.0 / free_N[0])
    assert torch.equal(clipped_NV[1], free_NV[1])


def test_the_sampled_support_needs_sampled_tokens() -> None:
    student_NV = rows(2).log_softmax(-1)
    with pytest.raises(ValueError, match="support sampled: no ids_N"):
        kl_rows(student_NV, student_NV, config=DistillConfig(support="sampled"))


def test_the_sampled_token_estimates_no_other_divergence() -> None:
    with pytest.raises(ValueError, match="support sampled with divergence jsd"):
        DistillConfig(support="sampled", divergence="jsd")


@given(st.lists(st.tuples(st.floats(-20, 0), st.floats(-20, 0)), min_size=1, max_size=8))
def test_trust_is_lost_where_the_teacher_would_not_have_written_what_stands_there(
    drawn: list[tuple[float, float]],
) -> None:
    student_T, teacher_T = (torch.tensor(column) for column in zip(*drawn, strict=True))
    expected, weight = [], 1.0
    for p, q in drawn:
        expected.append(weight)
        weight *= min(1.0, math.exp(q - p))
    assert trust_weights(student_T, teacher_T).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("delta", "passes"), [(0.0, True), (1.9, True), (2.1, False)])
def test_the_gate_asks_the_teacher_to_find_the_tokens_less_likely(
    delta: float, passes: bool
) -> None:
    student_T, teacher_T = torch.tensor([-1.0, -1.0]), torch.tensor([-4.0, 0.0])
    assert disagrees(student_T, teacher_T, delta=delta) == passes


def test_the_negative_pushes_a_token_down_to_the_floor_and_no_further() -> None:
    logits_V = torch.tensor([2.0, 0.0, 0.0], requires_grad=True)
    for _ in range(500):
        loss = negative_rows(logits_V.log_softmax(-1)[:1], floor=0.1).sum()
        (slope_V,) = torch.autograd.grad(loss, logits_V)
        logits_V = (logits_V - 0.1 * slope_V).detach().requires_grad_()
    assert logits_V.softmax(-1)[0].item() == pytest.approx(0.1, abs=0.01)
