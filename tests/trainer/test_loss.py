import math
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.loss import LossConfig, less_drift, policy_loss

torch.set_num_threads(1)

CONFIG = LossConfig(clip_low=0.2, clip_high=0.3, is_cap=2.0)


def loss_of(
    logprob: float,
    *,
    old: float = 0.0,
    rollout: float | None = None,
    advantage: float = 1.0,
    config: LossConfig = CONFIG,
) -> tuple[float, float]:
    """Return the loss of one token, and its gradient by the token's log-probability."""
    logprobs_T = torch.tensor([logprob], requires_grad=True)
    old_T = torch.tensor([old])
    loss, _ = policy_loss(
        logprobs_T,
        old_T,
        old_T if rollout is None else torch.tensor([rollout]),
        torch.tensor([advantage]),
        torch.tensor([True]),
        config=config,
    )
    loss.backward()
    assert logprobs_T.grad is not None
    return loss.item(), logprobs_T.grad.item()


def drawn(num: int, *, seed: int = 0) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    old_T = -torch.rand(num, generator=draw)
    return {
        "logprobs_T": (old_T + 0.2 * torch.randn(num, generator=draw)).requires_grad_(),
        "old_logprobs_T": old_T,
        "rollout_logprobs_T": old_T + 0.3 * torch.randn(num, generator=draw),
        "advantages_T": torch.randn(num, generator=draw),
        "mask_T": torch.rand(num, generator=draw) < 0.7,
    }


def test_on_policy_the_ratio_is_exactly_one_and_the_gradient_that_of_reinforce() -> None:
    rows = drawn(50)
    rows["old_logprobs_T"] = rows["rollout_logprobs_T"] = rows["logprobs_T"].detach()
    loss, metrics = policy_loss(**rows, config=CONFIG)
    loss.backward()
    expected_T = torch.where(rows["mask_T"], -rows["advantages_T"], torch.zeros(50))
    assert torch.equal(gradient(rows), expected_T)
    assert metrics["ratio"] == metrics["tokens"] == rows["mask_T"].sum()
    assert metrics["clipped"] == metrics["is_capped"] == metrics["mismatch_kl"] == 0


def gradient(rows: dict[str, Tensor]) -> Tensor:
    found_T = rows["logprobs_T"].grad
    assert found_T is not None
    return found_T


def test_it_is_the_formula_token_by_token() -> None:
    rows = drawn(200, seed=1)
    loss, _ = policy_loss(**rows, config=CONFIG)
    assert loss.item() == pytest.approx(plain_twin(rows), rel=1e-5)


def plain_twin(rows: dict[str, Tensor]) -> float:
    total = 0.0
    columns = [rows[name].tolist() for name in rows]
    for logprob, old, rollout, advantage, is_trained in zip(*columns, strict=True):
        if is_trained:
            ratio = math.exp(logprob - old)
            clipped = min(max(ratio, 0.8), 1.3)
            weight = min(math.exp(old - rollout), 2.0)
            total -= weight * min(ratio * advantage, clipped * advantage)
    return total


def test_the_loss_of_parts_adds_up_to_the_loss_of_the_whole() -> None:
    rows = drawn(60)
    whole, _ = policy_loss(**rows, config=CONFIG)
    parts = [
        policy_loss(**{name: row[part] for name, row in rows.items()}, config=CONFIG)[0]
        for part in (slice(0, 7), slice(7, 40), slice(40, 60))
    ]
    assert sum(part.item() for part in parts) == pytest.approx(whole.item(), rel=1e-6)


def test_masked_tokens_count_nothing_whatever_they_hold() -> None:
    rows = drawn(40)
    before, _ = policy_loss(**rows, config=CONFIG)
    spoilt = {name: row.detach().clone() for name, row in rows.items()}
    for name in ("old_logprobs_T", "rollout_logprobs_T", "advantages_T"):
        spoilt[name][~spoilt["mask_T"]] = math.nan
    after, _ = policy_loss(**spoilt, config=CONFIG)
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("ratio", "advantage", "is_pushed"),
    [(1.2, 1.0, True), (1.4, 1.0, False), (0.7, -1.0, False), (0.7, 1.0, True), (1.4, -1.0, True)],
)
def test_a_token_is_pushed_until_its_ratio_has_moved_far_enough(
    ratio: float, advantage: float, is_pushed: bool
) -> None:
    _, slope = loss_of(math.log(ratio), advantage=advantage)
    assert (slope != 0) == is_pushed


@pytest.mark.parametrize(("drift", "weight"), [(-1.0, math.exp(-1)), (0.5, math.exp(0.5)), (9, 2)])
def test_what_the_engine_and_the_trainer_disagree_on_is_weighted_up_to_the_cap(
    drift: float, weight: float
) -> None:
    loss, slope = loss_of(-1.0, old=-1.0, rollout=-1.0 - drift)
    assert (loss, slope) == (pytest.approx(-weight), pytest.approx(-weight))


def test_the_mismatch_is_measured_on_the_tokens_that_are_trained() -> None:
    rows = drawn(40)
    _, metrics = policy_loss(**rows, config=CONFIG)
    gap_T = (rows["old_logprobs_T"] - rows["rollout_logprobs_T"])[rows["mask_T"]]
    assert metrics["mismatch_k1"].item() == pytest.approx(-gap_T.sum().item(), rel=1e-5)
    assert metrics["mismatch_kl"].item() == pytest.approx(
        (gap_T.exp() - 1 - gap_T).sum().item(), rel=1e-4
    )
    assert metrics["mismatch_kl"] > 0


def test_the_k1_penalty_has_the_gradient_of_the_kl_to_the_reference_in_expectation() -> None:
    draw = torch.Generator().manual_seed(0)
    logits_V = torch.randn(5, generator=draw).requires_grad_()
    reference_V = torch.randn(5, generator=draw).log_softmax(0)
    logp_V = logits_V.log_softmax(0)
    (logp_V.exp() * (logp_V - reference_V)).sum().backward(retain_graph=True)
    wanted_V, logits_V.grad = logits_V.grad, None
    # Each token as often as the policy samples it.
    advantages_V = less_drift(
        torch.zeros(5), logp_V.detach(), reference_V, config=LossConfig(kl_coef=1.0)
    )
    rows = [logp_V, logp_V.detach(), logp_V.detach(), advantages_V * logp_V.detach().exp()]
    policy_loss(*rows, torch.ones(5, dtype=torch.bool))[0].backward()
    torch.testing.assert_close(logits_V.grad, wanted_V)


def test_nothing_to_train_gives_a_loss_of_zero_that_can_be_differentiated() -> None:
    rows: dict[str, Any] = drawn(5)
    rows["mask_T"] = torch.zeros(5, dtype=torch.bool)
    loss, metrics = policy_loss(**rows, config=CONFIG)
    loss.backward()
    assert loss == 0
    assert metrics["tokens"] == 0
    assert torch.equal(gradient(rows), torch.zeros(5))
