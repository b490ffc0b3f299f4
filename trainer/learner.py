"""Take steps of the optimizer over Samples, the same whatever their rows and ranks."""

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from trainer.advice import IDLE_IDS, read_all
from trainer.model import weights
from trainer.objective import Advice, Denominators, ObjectiveConfig, Scored, count, objective
from trainer.optimizer import (
    OptimizerConfig,
    clip_gradients,
    make_optimizer,
    param_groups,
    set_rate,
)
from trainer.pack import pack
from trainer.ranks import Ranks
from trainer.records import Sample, Segment
from trainer.scoring import measure_logprobs
from trainer.spread import Replicated, Spread
from trainer.teacher import Teacher

# What a rank learns from that must run the model once more, as others do.
IDLE = Sample(
    id="",
    segment=Segment(
        ids=IDLE_IDS,
        sampled=np.zeros(len(IDLE_IDS), dtype=np.bool_),
        logprobs=np.zeros(len(IDLE_IDS), dtype=np.float32),
        replies=(),
    ),
    advantage=0.0,
    targets=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What a step came to; sums are over all ranks."""

    # As `objective` names them, and `loss`.
    sums: dict[str, float]
    denominators: Denominators
    # Of the whole gradient, before it was clipped.
    grad_norm: float
    lr: float
    # The loss or the gradient was no number, so nothing was changed.
    is_skipped: bool


class Learner:
    """Owns the policy, its optimizer and its teacher."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        objective_config: ObjectiveConfig,
        optimizer_config: OptimizerConfig,
        row_tokens: int,
        ranks: Ranks,
        spread: Spread | None = None,
    ) -> None:
        """Lay the weights out; without a `spread` each rank has all of them.

        Raises:
            ValueError: model or optimizer cannot be laid out so.
        """
        self.model = model
        self.spread = spread or Replicated(ranks)
        self.teacher = Teacher(model, objective_config.distill)
        # What the k1 penalty holds on to: the weights at the start.
        reference = copy.deepcopy(model) if objective_config.loss.kl_coef else None
        self._policy = self.spread.place(model)
        self.teacher.share(self.spread.place, policy=self._policy)
        self._reference = None if reference is None else self.spread.place(reference)
        self.groups = param_groups(model, config=optimizer_config)
        self.optimizer = make_optimizer(self.groups, config=optimizer_config, world=ranks.world)
        self._objective, self._optimizing = objective_config, optimizer_config
        self._row_tokens, self._ranks = row_tokens, ranks

    @property
    def looks_after_teacher(self) -> bool:
        """Whether this rank checks the teacher: the first one, or all that hold it together."""
        return self.spread.is_sharded or self._ranks.is_first

    def learn(self, samples: Sequence[Sample], *, step: int) -> Learnt:
        """Change the model by one step; a rank may have no Samples.

        Raises:
            RankError: another rank did not come.
        """
        own = count(samples)
        counts = {"tokens": own.tokens, "target_tokens": own.target_tokens}
        total = self._ranks.sum_numbers(counts, f"step {step}, counts of tokens")
        denominators = Denominators(**total)
        self.optimizer.zero_grad()
        with self.spread.passing(f"step {step}, its passes"):
            own_sums = self._accumulate(self.spread.share(samples), denominators)
        parameters = [it for group in self.groups for it in group.members.values()]
        self.spread.sum_gradients(parameters, f"step {step}, gradients")
        sums = self._ranks.sum_numbers(own_sums, f"step {step}, metrics")
        norm = self.spread.norm(parameters)
        clip_gradients(parameters, norm=norm, max_norm=self._optimizing.max_grad_norm)
        lr = set_rate(self.optimizer, step, config=self._optimizing)
        is_good = math.isfinite(norm) and math.isfinite(sums.get("loss", 0.0))
        # Without a token there is no gradient, and weights would only decay.
        if is_good and denominators.tokens:
            self.optimizer.step()
            self.teacher.update(self.model)
        self.optimizer.zero_grad()
        return Learnt(
            sums=sums,
            denominators=denominators,
            grad_norm=norm,
            lr=lr,
            is_skipped=not is_good,
        )

    def _accumulate(
        self, samples: Sequence[Sample], denominators: Denominators
    ) -> dict[str, float]:
        """Add up the gradients of all rows; return the sums of what was measured on them."""
        sums: Counter[str] = Counter()
        lengths = [len(sample.segment.ids) for sample in samples]
        bins = pack(lengths, budget=self._row_tokens)
        advice = self._advice(samples)
        for number in range(self.spread.num_passes(len(bins))):
            own = [samples[index] for index in bins[number]] if number < len(bins) else [IDLE]
            loss, metrics = objective(
                self._policy,
                self._scored(own),
                teacher=advice,
                denominators=denominators,
                config=self._objective,
            )
            loss.backward()
            sums.update(metrics | {"loss": float(loss.detach())})
        return dict(sums)

    def _advice(self, samples: Sequence[Sample]) -> Advice:
        """Return the teacher, or what it says where ranks must run it in step."""
        if not self.spread.is_sharded:
            return self.teacher
        has_weight = bool(self._objective.distill.weight)
        return read_all(
            self.teacher.reader,
            samples if has_weight else (),
            row_tokens=self._row_tokens,
            num_passes=self.spread.num_passes,
        )

    def _scored(self, samples: Sequence[Sample]) -> list[Scored]:
        """Return Samples with what they are held against; a step moves the weights but once."""
        if self._reference is None:
            return [Scored(sample=sample) for sample in samples]
        measured = measure_logprobs(
            self._reference,
            [sample.segment for sample in samples],
            temperature=self._objective.temperature,
            chunk=self._objective.chunk,
        )
        return [
            Scored(sample=sample, reference_logprobs=logprobs)
            for sample, logprobs in zip(samples, measured, strict=True)
        ]

    def weights(self) -> dict[str, Tensor]:
        """Return the policy's whole weights by name; if ranks hold them together, all must ask."""
        return self.spread.whole(self.model)

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors that a run goes on from, by name; this rank's parts of them."""
        named: dict[Tensor, str] = {
            it: name for group in self.groups for name, it in group.members.items()
        }
        return {
            **{f"policy/{name}": it for name, it in weights(self.model).items()},
            **{f"teacher/{name}": it for name, it in self.teacher.tensors().items()},
            **{
                f"optimizer/{named[parameter]}/{key}": value
                for part in self.optimizer.parts
                for parameter, state in part.state.items()
                for key, value in state.items()
            },
        }
