"""Find how a Target pulls at the policy: towards its hinted self, and away from what it wrote.

Letters of shapes: N tokens of a Target, C tokens of a chunk, D width of the model, V vocabulary.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from trainer.distill import (
    DistillConfig,
    disagrees,
    kl_rows,
    kl_sampled,
    negative_rows,
    trust_weights,
)
from trainer.head import log_softmax_rows, token_logprobs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Heads:
    """What turns hidden states into log-probabilities."""

    # [V, D], the policy's, with gradient.
    student_VD: Tensor
    # The teacher's, [V, D].
    teacher_VD: Tensor
    temperature: float
    # Tokens whose logits are held at once.
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """The tokens of a Target, as the policy reads them."""

    # Name of the detector.
    kind: str
    # The tokens themselves, [N].
    ids_N: Tensor
    # [N], log-probabilities that they were sampled with.
    rollout_N: Tensor
    # [N], the policy's log-probabilities, with gradient.
    student_N: Tensor
    # [N, D], the policy's hidden states that predict them, with gradient.
    student_ND: Tensor


def pull(
    lessons: Sequence[Lesson],
    taught: Sequence[Tensor],
    *,
    heads: Heads,
    config: DistillConfig,
) -> tuple[Tensor, dict[str, float]]:
    """Return the SUM over all tokens of some Targets of what pulls at them, and sums to watch.

    `taught` are the hidden states [N, D] that predict each Target's tokens after its hint; without
    them no hint pulls.

    Metrics: `targets`, their number; `hint_gain`, by how many nats the hint makes what was written
    more likely (the lower, the surer the teacher is that it was wrong); `passed`, the number of
    those that the gate lets through; `kl` over the tokens of these, before any weight, and
    `kl_tokens`, their number. Each also for each kind of finding, as `targets/<kind>`.
    """
    metrics: Counter[str] = Counter()
    pulls = []
    for lesson in lessons:
        pulls.append(config.negative * _away(lesson, config=config))
        metrics.update(["targets", f"targets/{lesson.kind}"])
    for lesson, teacher_ND in zip(lessons, taught, strict=bool(taught)):
        pulled, sums = _towards(lesson, teacher_ND, heads=heads, config=config)
        pulls.append(config.weight * pulled)
        metrics.update(sums | {f"{name}/{lesson.kind}": value for name, value in sums.items()})
    return torch.stack(pulls).sum(), dict(metrics)


def _away(lesson: Lesson, *, config: DistillConfig) -> Tensor:
    return negative_rows(lesson.student_N, floor=config.negative_floor).sum()


def _towards(
    lesson: Lesson, teacher_ND: Tensor, *, heads: Heads, config: DistillConfig
) -> tuple[Tensor, dict[str, float]]:
    """Return the sum over a Target's tokens of the weighted divergence, 0 without a pass.

    A token weighs by its staleness, and with `trust` by how far the teacher goes along with what
    stands before it. Weights carry no gradient.
    """
    student_N = lesson.student_N.detach()
    teacher_N = _teacher_logprobs(lesson, teacher_ND, heads)
    metrics = {"hint_gain": float((teacher_N - student_N).sum())}
    delta = config.gate_delta
    if delta is not None and not disagrees(student_N, teacher_N, delta=delta):
        return lesson.student_N.new_zeros(()), metrics
    if config.support == "sampled":
        divergences_N = kl_sampled(lesson.student_N, teacher_N, config=config)
    else:
        divergences_N = _divergences(lesson, teacher_ND, heads=heads, config=config)
    weights_N = (student_N - lesson.rollout_N).exp().clamp(max=config.stale_cap)
    if config.trust:
        weights_N = weights_N * trust_weights(student_N, teacher_N)
    metrics |= {
        "passed": 1,
        "kl": float(divergences_N.detach().sum()),
        "kl_tokens": len(divergences_N),
    }
    return (weights_N * divergences_N).sum(), metrics


@torch.no_grad()
def _teacher_logprobs(lesson: Lesson, teacher_ND: Tensor, heads: Heads) -> Tensor:
    return token_logprobs(
        teacher_ND,
        heads.teacher_VD,
        lesson.ids_N,
        temperature=heads.temperature,
        chunk=heads.chunk,
    )


def _divergences(
    lesson: Lesson, teacher_ND: Tensor, *, heads: Heads, config: DistillConfig
) -> Tensor:
    """Return the divergence of each token; logits are held for a chunk, and made again later."""

    def of_chunk(
        student_CD: Tensor, student_VD: Tensor, teacher_CD: Tensor, ids_C: Tensor
    ) -> Tensor:
        student_CV = log_softmax_rows(student_CD, student_VD, temperature=heads.temperature)
        with torch.no_grad():
            teacher_CV = log_softmax_rows(
                teacher_CD, heads.teacher_VD, temperature=heads.temperature
            )
        return kl_rows(student_CV, teacher_CV, config=config, ids_N=ids_C)

    parts = [
        checkpoint(
            of_chunk,
            lesson.student_ND[start : start + heads.chunk],
            heads.student_VD,
            teacher_ND[start : start + heads.chunk],
            lesson.ids_N[start : start + heads.chunk],
            use_reentrant=False,
            preserve_rng_state=False,
        )
        for start in range(0, len(lesson.ids_N), heads.chunk)
    ]
    return torch.cat(parts)
