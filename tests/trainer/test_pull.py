import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.distill import DistillConfig, kl_rows, trust_weights
from trainer.pull import Heads, Lesson, pull

torch.set_num_threads(1)

WIDTH, VOCABULARY, TOKENS = 6, 11, 5


def heads(*, chunk: int = 2) -> Heads:
    draw = torch.Generator().manual_seed(0)
    student_VD, teacher_VD = (
        torch.randn(VOCABULARY, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2)
    )
    return Heads(
        student_VD=student_VD.requires_grad_(),
        teacher_VD=teacher_VD,
        temperature=1.0,
        chunk=chunk,
    )


def lesson(given: Heads, *, kind: str = "unknown_tool", seed: int = 1) -> tuple[Lesson, Tensor]:
    """Return a Lesson of tokens that are on policy, and what its teacher read."""
    draw = torch.Generator().manual_seed(seed)
    student_ND, teacher_ND = (
        torch.randn(TOKENS, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2)
    )
    ids_N = torch.randint(VOCABULARY, (TOKENS,), generator=draw)
    student_ND = student_ND.requires_grad_()
    logp_NV = (student_ND @ given.student_VD.T).log_softmax(-1)
    student_N = logp_NV.gather(-1, ids_N[:, None])[:, 0]
    made = Lesson(
        kind=kind,
        ids_N=ids_N,
        rollout_N=student_N.detach(),
        student_N=student_N,
        student_ND=student_ND,
    )
    return made, teacher_ND


def rows(given: Heads, made: Lesson, teacher_ND: Tensor) -> tuple[Tensor, Tensor]:
    """Return all log-probabilities of both."""
    return (
        (made.student_ND @ given.student_VD.T).log_softmax(-1),
        (teacher_ND @ given.teacher_VD.T).log_softmax(-1),
    )


def run(
    given: Heads, made: Lesson, teacher_ND: Tensor, **choices: Any
) -> tuple[Tensor, dict[str, float]]:
    return pull([made], [teacher_ND], heads=given, config=DistillConfig(clip=None, **choices))


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_the_pull_is_the_sum_of_the_divergences_whatever_the_chunk(chunk: int) -> None:
    given = heads(chunk=chunk)
    made, teacher_ND = lesson(given)
    pulled, metrics = run(given, made, teacher_ND, weight=3.0)
    whole_N = kl_rows(*rows(given, made, teacher_ND), config=DistillConfig(clip=None))
    assert pulled.item() == pytest.approx(3 * whole_N.sum().item(), rel=1e-6)
    assert metrics["kl"] == pytest.approx(whole_N.sum().item(), rel=1e-6)
    for at in (made.student_ND, given.student_VD):
        (found,) = torch.autograd.grad(pulled, at, retain_graph=True)
        (expected,) = torch.autograd.grad(3 * whole_N.sum(), at, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_target_that_the_teacher_agrees_with_weighs_nothing_and_is_counted() -> None:
    given = heads()
    made, teacher_ND = lesson(given)
    student_NV, teacher_NV = rows(given, made, teacher_ND)
    gain = (teacher_NV - student_NV).gather(-1, made.ids_N[:, None]).sum().item()
    passed, open_metrics = run(given, made, teacher_ND, gate_delta=-gain - 0.01)
    stopped, shut_metrics = run(given, made, teacher_ND, gate_delta=-gain + 0.01)
    assert passed > 0
    assert stopped == 0
    assert (open_metrics["targets"], open_metrics["passed/unknown_tool"]) == (1, 1)
    assert shut_metrics["targets"] == 1
    assert "passed" not in shut_metrics
    assert shut_metrics["hint_gain"] == pytest.approx(gain, rel=1e-5)


@pytest.mark.parametrize(("moved", "weight"), [(-1.0, math.exp(-1)), (0.5, math.exp(0.5)), (9, 2)])
def test_a_stale_token_weighs_by_its_ratio_up_to_the_cap(moved: float, weight: float) -> None:
    given = heads()
    made, teacher_ND = lesson(given)
    fresh, _ = run(given, made, teacher_ND)
    stale = replace(made, rollout_N=made.rollout_N - moved)
    assert run(given, stale, teacher_ND)[0].item() == pytest.approx(fresh.item() * weight, rel=1e-5)


def test_with_trust_tokens_behind_one_that_the_teacher_would_not_write_weigh_less() -> None:
    given = heads()
    made, teacher_ND = lesson(given)
    student_NV, teacher_NV = rows(given, made, teacher_ND)
    logp_N, logq_N = (it.gather(-1, made.ids_N[:, None])[:, 0] for it in (student_NV, teacher_NV))
    weights_N = trust_weights(logp_N, logq_N)
    assert weights_N[-1] < 0.9
    whole_N = kl_rows(student_NV, teacher_NV, config=DistillConfig(clip=None))
    trusted, _ = run(given, made, teacher_ND, trust=True)
    assert trusted.item() == pytest.approx((weights_N * whole_N).sum().item(), rel=1e-5)


def test_a_prohibition_needs_no_teacher_and_makes_the_tokens_less_likely() -> None:
    given = heads()
    made, _ = lesson(given)
    config = DistillConfig(weight=0, negative=0.5, negative_floor=1e-9)
    pulled, metrics = pull([made], (), heads=given, config=config)
    (slope_N,) = torch.autograd.grad(pulled, made.student_N)
    assert slope_N.tolist() == [0.5] * TOKENS
    assert metrics == {"targets": 1, "targets/unknown_tool": 1}


def test_several_targets_add_up_and_are_counted_by_kind() -> None:
    given = heads()
    pairs = [lesson(given), lesson(given, kind="bad_json", seed=2)]
    apart = [run(given, made, teacher_ND)[0].item() for made, teacher_ND in pairs]
    lessons, taught = zip(*pairs, strict=True)
    both, metrics = pull(lessons, taught, heads=given, config=DistillConfig(clip=None))
    assert both.item() == pytest.approx(sum(apart), rel=1e-6)
    assert metrics["kl/bad_json"] == pytest.approx(apart[1], rel=1e-6)
    assert metrics["kl_tokens"] == 2 * TOKENS
