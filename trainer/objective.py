"""The loss of a micro-batch: reward over whole Segments, and hints at single Replies.

Letters of shapes: T tokens of a packed row, L tokens of a Segment, S sampled tokens.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from pydantic import Field
from torch import Tensor

from trainer.distill import DistillConfig
from trainer.forward import Model, share_of
from trainer.loss import LossConfig, less_drift, policy_loss
from trainer.pull import Heads, Lesson, pull
from trainer.records import Floats, Sample, Segment, Target
from trainer.scoring import Scores, score
from trainer.settings import Settings


class ObjectiveConfig(Settings):
    """What is minimised."""

    # That of the rollouts: a token has the probability that it was sampled with.
    temperature: float = Field(default=1.0, gt=0)
    # Tokens whose logits are held at once.
    chunk: int = Field(default=256, ge=1)
    loss: LossConfig = LossConfig()
    distill: DistillConfig = DistillConfig()


class Advice(Protocol):
    """What a teacher says of Targets."""

    @property
    def head(self) -> Tensor:
        """Weight [V, D] that turns the states of `read` into logits."""

    def read(self, segment: Segment, targets: Sequence[Target]) -> list[Tensor]:
        """Return for each Target the states [N, D] that predict its tokens after its hint."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A Sample with what was measured when the step began."""

    sample: Sample
    # [L], log-probabilities under the weights then; None where these have not moved since.
    old_logprobs: Floats | None = None
    # [L], under the policy that the k1 penalty holds on to.
    reference_logprobs: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Denominators:
    """What the sums of a whole step, over its micro-batches and ranks, are divided by."""

    # Sampled tokens.
    tokens: float
    # Tokens that Targets are on.
    target_tokens: float


def count(samples: Iterable[Sample]) -> Denominators:
    """Count the tokens of some samples; counts of parts add up to that of the whole."""
    samples = list(samples)
    targets = [target for sample in samples for target in hinted(sample)]
    return Denominators(
        tokens=sum(int(sample.segment.sampled.sum()) for sample in samples),
        target_tokens=sum(target.end - target.start for target in targets),
    )


def hinted(sample: Sample) -> tuple[Target, ...]:
    """Return the Targets that say something: an empty hint is no advice."""
    return tuple(target for target in sample.targets if len(target.hint_ids))


def objective(
    model: Model,
    rows: Sequence[Scored],
    *,
    teacher: Advice,
    denominators: Denominators,
    config: ObjectiveConfig,
) -> tuple[Tensor, dict[str, float]]:
    """Return what a micro-batch adds to the loss of its step, and sums to watch.

    The loss of a step is `policy_loss` over its sampled tokens, by their number, plus what its
    Targets pull, by the denominator that `config.distill` names. Both are sums with a weight of
    their own, so neither changes the gradient of the other, and the split of a step into
    micro-batches, or of a row into the shares of ranks, changes nothing.

    Metrics are those of `policy_loss`, `entropy` over the same tokens, and those of `pull`.

    Raises:
        ValueError: the k1 penalty has a weight and a row no reference.
    """
    aimed = list(_aimed(rows, share=share_of(model)))
    scores = score(
        model,
        [row.sample.segment for row in rows],
        temperature=config.temperature,
        chunk=config.chunk,
        also=[tokens for _, _, tokens in aimed],
    )
    policy, sums = _policy(rows, scores, config=config.loss)
    metrics = Counter(sums)
    loss = config.loss.weight * policy / max(denominators.tokens, 1)
    by_name = {"batch": denominators.tokens, "targets": denominators.target_tokens}
    heads = Heads(
        student_VD=scores.head_VD,
        teacher_VD=teacher.head,
        temperature=config.temperature,
        chunk=config.chunk,
    )
    for row in rows:
        if mine := [(target, tokens) for whose, target, tokens in aimed if whose is row]:
            targets = [target for target, _ in mine]
            lessons = [_lesson(target, scores, tokens) for target, tokens in mine]
            taught = teacher.read(row.sample.segment, targets) if config.distill.weight else ()
            pulled, sums = pull(lessons, taught, heads=heads, config=config.distill)
            loss = loss + pulled / by_name[config.distill.denominator]
            metrics.update(sums)
    return loss, dict(metrics)


def _aimed(
    rows: Sequence[Scored], *, share: tuple[int, int]
) -> Iterator[tuple[Scored, Target, slice]]:
    """Yield the Targets of this rank's share, with their tokens of the packed row."""
    number, ranks = share
    start = seen = 0
    for row in rows:
        for target in hinted(row.sample):
            tokens = slice(start + target.start, start + target.end)
            sampled = row.sample.segment.sampled[target.start : target.end]
            assert sampled.all(), f"{target}: is on tokens that the policy did not sample"
            if seen % ranks == number:
                yield row, target, tokens
            seen += 1
        start += len(row.sample.segment.ids)


def _policy(
    rows: Sequence[Scored], scores: Scores, *, config: LossConfig
) -> tuple[Tensor, dict[str, float]]:
    device = scores.logprobs_T.device
    old_T = scores.logprobs_T.detach().clone()
    advantages_T = torch.zeros_like(old_T)
    for row, span in zip(rows, scores.spans, strict=True):
        advantages_T[span] = row.sample.advantage
        if row.old_logprobs is not None:
            old_T[span] = torch.from_numpy(row.old_logprobs).to(device)
        if config.kl_coef:
            advantages_T[span] = less_drift(
                advantages_T[span], old_T[span], _reference(row).to(device), config=config
            )
    loss, sums = policy_loss(
        scores.logprobs_T,
        old_T,
        scores.rollout_T,
        advantages_T,
        scores.sampled_T,
        config=config,
    )
    metrics = {name: float(value) for name, value in sums.items()}
    return loss, metrics | {"entropy": float(scores.entropies_S.sum())}


def _reference(row: Scored) -> Tensor:
    if row.reference_logprobs is None:
        raise ValueError(f"sample {row.sample.id}: no reference_logprobs, expected for kl_coef")
    return torch.from_numpy(row.reference_logprobs)


def _lesson(target: Target, scores: Scores, tokens: slice) -> Lesson:
    """Cut a Target out of the packed row."""
    return Lesson(
        kind=target.kind,
        ids_N=scores.ids_T[tokens],
        rollout_N=scores.rollout_T[tokens],
        student_N=scores.logprobs_T[tokens],
        student_ND=scores.states_TD[tokens.start - 1 : tokens.stop - 1],
    )
