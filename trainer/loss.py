"""The policy gradient: a clipped ratio a token, weighted by how far the rollout had drifted.

Letters of shapes: T tokens.
"""

import math

from pydantic import Field
from torch import Tensor

from trainer.settings import Settings


class LossConfig(Settings):
    """How a token counts; names are those of the field."""

    # Weight of the policy gradient, beside what targets pull.
    weight: float = Field(default=1.0, ge=0)
    # The ratio of new to old probability is clipped to [1 - clip_low, 1 + clip_high]. It acts where
    # weights move more than once on the same tokens; `trainer.loop` moves them once, so there the
    # ratio is 1.
    clip_low: float = Field(default=0.2, gt=0, le=1)
    clip_high: float = Field(default=0.28, gt=0)
    # Cap of the importance weight between the engine that sampled and the trainer, which differ
    # in kernels and in staleness (truncated importance sampling).
    is_cap: float = Field(default=2.0, gt=0)
    # Weight of the k1 penalty of leaving the reference policy.
    kl_coef: float = Field(default=0.0, ge=0)


PLAIN = LossConfig()


def policy_loss(
    logprobs_T: Tensor,
    old_logprobs_T: Tensor,
    rollout_logprobs_T: Tensor,
    advantages_T: Tensor,
    mask_T: Tensor,
    *,
    config: LossConfig = PLAIN,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the SUM of the loss over the masked tokens, and sums of what is worth watching.

    `-w min(r A, clip(r) A)` with the ratio `r = exp(logprobs - old)`, the advantage `A`, and the
    weight `w = min(exp(old - rollout), is_cap)`, which carries no gradient. `old` are the
    log-probabilities under the trainer's weights when the step began, `rollout` those that the
    engine gave when it sampled. The caller divides by the number of tokens of the whole step, so
    that the split into micro-batches and ranks changes nothing.

    Metrics are detached sums over the same tokens: `tokens`, `ratio`, `clipped`, `is_weight`,
    `is_capped`, and two estimates of KL(rollout || old): `mismatch_k1`, and `mismatch_kl` (k3),
    which is never negative.
    """
    mask_T = mask_T.bool()
    old_T, rollout_T = old_logprobs_T[mask_T].detach(), rollout_logprobs_T[mask_T].detach()
    advantages_T = advantages_T[mask_T].detach()
    drift_T = old_T - rollout_T
    weights_T = drift_T.exp().clamp(max=config.is_cap)
    ratios_T = (logprobs_T[mask_T] - old_T).exp()
    plain_T = ratios_T * advantages_T
    clipped_T = ratios_T.clamp(1 - config.clip_low, 1 + config.clip_high) * advantages_T
    metrics = {
        "tokens": mask_T.sum(),
        "ratio": ratios_T.detach().sum(),
        "clipped": (clipped_T < plain_T).sum(),
        "is_weight": weights_T.sum(),
        "is_capped": (drift_T > math.log(config.is_cap)).sum(),
        "mismatch_k1": -drift_T.sum(),
        "mismatch_kl": (drift_T.expm1() - drift_T).sum(),
    }
    return -(weights_T * plain_T.minimum(clipped_T)).sum(), metrics


def less_drift(
    advantages_T: Tensor,
    old_logprobs_T: Tensor,
    reference_logprobs_T: Tensor,
    *,
    config: LossConfig,
) -> Tensor:
    """Take from each advantage `kl_coef` times the k1 estimate of the KL to a reference policy.

    k1 is `old - reference`. It belongs into the advantage: as a term of the loss, its gradient is
    0 in expectation.
    """
    return advantages_T - config.kl_coef * (old_logprobs_T - reference_logprobs_T).detach()
