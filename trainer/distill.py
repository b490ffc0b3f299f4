"""Measure how far the policy is from what it would say after a hint.

Letters of shapes: N tokens of targets, V vocabulary, K entries of the support.
"""

import math
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from trainer.settings import Settings

Divergence = Literal["reverse", "forward", "jsd"]


class DistillConfig(Settings):
    """How targets pull at the policy."""

    # Weight of the divergence, beside the policy loss and not instead of a part of it.
    weight: float = Field(default=1.0, ge=0)
    # KL(student || teacher), KL(teacher || student), or Jensen-Shannon.
    divergence: Divergence = "reverse"
    # Over all of the vocabulary; over the student's `top_k` and one bucket for the rest; or an
    # estimate from the sampled token alone, of the reverse KL.
    support: Literal["full", "topk", "sampled"] = "full"
    top_k: int = Field(default=100, ge=1)
    # Most that a token counts, in nats; None for no bound.
    clip: float | None = Field(default=5.0, gt=0)
    # A token counts by how much of what stands before it the teacher would have written.
    trust: bool = False
    # A target counts when the teacher finds its tokens less likely than the student does, by more
    # than this many nats in sum; None for no gate.
    gate_delta: float | None = None
    # Most that a token counts by the ratio of its probability now to when it was sampled.
    stale_cap: float = Field(default=2.0, gt=0)
    # Weight of making the sampled tokens of a target less likely, whatever a teacher says.
    negative: float = Field(default=0.0, ge=0)
    # Below this probability a token is not made less likely.
    negative_floor: float = Field(default=0.01, gt=0, lt=1)
    # Weights of the teacher: those at the start, their moving average, or the student's own.
    teacher: Literal["frozen", "ema", "live"] = "ema"
    # Share of the student's weights in the average after a step.
    ema_rate: float = Field(default=0.01, gt=0, le=1)
    # How much worse than at first the teacher may do on its canaries.
    canary_bound: float = Field(default=0.2, gt=0, le=1)
    # What the sum is divided by: sampled tokens of the whole step, so that the pull vanishes with
    # the faults; or tokens of its targets, so that it stays however few they are.
    denominator: Literal["batch", "targets"] = "batch"

    @model_validator(mode="after")
    def _has_an_estimate(self) -> Self:
        if self.support == "sampled" and self.divergence != "reverse":
            raise ValueError(
                f"support sampled with divergence {self.divergence}: "
                "the sampled token estimates the reverse divergence alone"
            )
        return self


PLAIN = DistillConfig()


def kl_rows(
    student_logp_NV: Tensor,
    teacher_logp_NV: Tensor,
    *,
    config: DistillConfig = PLAIN,
    ids_N: Tensor | None = None,
) -> Tensor:
    """Return the divergence [N] of each row; its gradient goes to the student alone.

    Rows are log-probabilities, normalised, at one temperature. `ids_N`, the sampled tokens, are
    needed for the support `sampled`; in `topk` they are always part of the support. Equal rows
    give exactly 0, and a gradient that is exactly 0. What is over `clip` is scaled down to it and
    keeps its direction: cut off, the worst tokens would be those that are not pulled.

    Raises:
        ValueError: the support is `sampled` and there are no sampled tokens.
    """
    teacher_logp_NV = teacher_logp_NV.detach()
    if config.support == "sampled":
        if ids_N is None:
            raise ValueError("support sampled: no ids_N, expected the sampled token of each row")
        sampled = [it.gather(-1, ids_N[:, None])[:, 0] for it in (student_logp_NV, teacher_logp_NV)]
        return kl_sampled(*sampled, config=config)
    if config.support == "topk":
        support_NK = _top(student_logp_NV, ids_N, size=config.top_k)
        student_logp_NV = _with_tail(student_logp_NV.gather(-1, support_NK))
        teacher_logp_NV = _with_tail(teacher_logp_NV.gather(-1, support_NK))
    return _clipped(
        _divergence(student_logp_NV, teacher_logp_NV, kind=config.divergence), clip=config.clip
    )


def _divergence(student_logp_NV: Tensor, teacher_logp_NV: Tensor, *, kind: Divergence) -> Tensor:
    """Return the divergence with its gradient in closed form.

    The gradient by the logits is 0 to the bit for equal rows, which that of the sum, term by term,
    is not: there, large parts cancel up to rounding.
    """
    with torch.no_grad():
        terms_NV, slopes_NV = _TERMS[kind](student_logp_NV, teacher_logp_NV)
        values_N = terms_NV.sum(-1)
        if kind != "forward":
            slopes_NV -= student_logp_NV.exp() * slopes_NV.sum(-1, keepdim=True)
    # The rows' own values are taken away again: what is left has a gradient and no value.
    return values_N + (slopes_NV * (student_logp_NV - student_logp_NV.detach())).sum(-1)


def _reverse(logp_NV: Tensor, logq_NV: Tensor) -> tuple[Tensor, Tensor]:
    terms_NV = logp_NV.exp() * (logp_NV - logq_NV)
    return terms_NV, terms_NV.clone()


def _forward(logp_NV: Tensor, logq_NV: Tensor) -> tuple[Tensor, Tensor]:
    q_NV = logq_NV.exp()
    return q_NV * (logq_NV - logp_NV), logp_NV.exp() - q_NV


def _jsd(logp_NV: Tensor, logq_NV: Tensor) -> tuple[Tensor, Tensor]:
    """`m = (p + q) / 2`; log m - log p = softplus(log q - log p) - log 2, which cannot overflow."""
    gap_NV = logq_NV - logp_NV
    zero = torch.nn.functional.softplus(torch.zeros_like(gap_NV[:1, :1]))
    from_p_NV = zero - torch.nn.functional.softplus(gap_NV)
    from_q_NV = zero - torch.nn.functional.softplus(-gap_NV)
    pulled_NV = logp_NV.exp() * from_p_NV / 2
    return pulled_NV + logq_NV.exp() * from_q_NV / 2, pulled_NV


# Of each divergence: its terms, and its slope by the student's log-probabilities up to what
# normalisation takes away.
_TERMS = {"reverse": _reverse, "forward": _forward, "jsd": _jsd}


def kl_sampled(
    student_logp_N: Tensor, teacher_logp_N: Tensor, *, config: DistillConfig = PLAIN
) -> Tensor:
    """Return log p - log q [N] of sampled tokens, for who has no more than their log-probabilities.

    Both it and its gradient are, in expectation, those of the reverse divergence.
    """
    gap_N = (student_logp_N - teacher_logp_N).detach()
    return _clipped(gap_N + gap_N * (student_logp_N - student_logp_N.detach()), clip=config.clip)


def _top(student_logp_NV: Tensor, ids_N: Tensor | None, *, size: int) -> Tensor:
    """Return the ids [N, K] of the student's likeliest tokens, the sampled one among them."""
    ranked_NV = student_logp_NV.detach()
    if ids_N is not None:
        ranked_NV = ranked_NV.scatter(-1, ids_N[:, None], math.inf)
    return ranked_NV.topk(min(size, ranked_NV.shape[-1] - 1), dim=-1).indices


def _with_tail(logp_NK: Tensor) -> Tensor:
    """Append the log-probability of all that is not in the support."""
    # In fp32 the support may sum to 1 or a little more.
    total_N1 = logp_NK.logsumexp(-1, keepdim=True).clamp(max=-1e-7)
    return torch.cat([logp_NK, (-total_N1.expm1()).log()], dim=-1)


def _clipped(values_N: Tensor, *, clip: float | None) -> Tensor:
    if clip is None:
        return values_N
    return values_N * (clip / values_N.detach().abs().clamp(min=clip))


def trust_weights(student_logp_T: Tensor, teacher_logp_T: Tensor) -> Tensor:
    """Return for each sampled token of a target how far the teacher goes along with its prefix.

    `w_t = product over i < t of min(1, q_i / p_i)`: after a token that it would not have written,
    what the teacher says is a guess. The first weighs 1.
    """
    ratios_T = (teacher_logp_T - student_logp_T).detach().clamp(max=0)
    return (ratios_T.cumsum(0) - ratios_T).exp()


def disagrees(student_logp_T: Tensor, teacher_logp_T: Tensor, *, delta: float) -> bool:
    """Tell whether the teacher finds a target's tokens less likely, by more than `delta` nats."""
    return bool((teacher_logp_T - student_logp_T).sum() < -delta)


def negative_rows(logprobs_N: Tensor, *, floor: float) -> Tensor:
    """Return a loss [N] that makes sampled tokens less likely, down to a probability of `floor`.

    Without the floor it has no minimum and would go on for ever.
    """
    return logprobs_N.clamp(min=math.log(floor))
