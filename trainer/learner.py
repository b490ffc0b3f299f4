"""Take steps of the optimizer over Samples, the same whatever their rows and ranks."""

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedModel

from trainer.objective import Denominators, ObjectiveConfig, Scored, count, objective
from trainer.optimizer import (
    OptimizerConfig,
    clip_gradients,
    make_optimizer,
    param_groups,
    set_rate,
)
from trainer.pack import pack
from trainer.ranks import Ranks
from trainer.records import Sample
from trainer.scoring import measure_logprobs
from trainer.teacher import Teacher


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
    ) -> None:
        self.model = model
        self.groups = param_groups(model, config=optimizer_config)
        self.optimizer = make_optimizer(self.groups, config=optimizer_config, world=ranks.world)
        self.teacher = Teacher(model, objective_config.distill)
        self._objective, self._optimizing = objective_config, optimizer_config
        # What the k1 penalty holds on to: the weights at the start.
        self._reference = copy.deepcopy(model) if objective_config.loss.kl_coef else None
        self._row_tokens, self._ranks = row_tokens, ranks

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
        own_sums = self._accumulate(samples, denominators)
        parameters = [it for group in self.groups for it in group.members.values()]
        self._ranks.sum_gradients(parameters, f"step {step}, gradients")
        sums = self._ranks.sum_numbers(own_sums, f"step {step}, metrics")
        norm = clip_gradients(parameters, max_norm=self._optimizing.max_grad_norm)
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
        for members in pack(lengths, budget=self._row_tokens):
            loss, metrics = objective(
                self.model,
                self._scored([samples[index] for index in members]),
                teacher=self.teacher,
                denominators=denominators,
                config=self._objective,
            )
            loss.backward()
            sums.update(metrics | {"loss": float(loss.detach())})
        return dict(sums)

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

    def state(self) -> dict[str, object]:
        """Return what a checkpoint holds besides the weights of the policy."""
        return {"optimizer": self.optimizer.state_dict(), "teacher": self.teacher.state()}

    def load(self, state: dict[str, object]) -> None:
        """Go on from a state; the policy's weights are loaded apart.

        Raises:
            RuntimeError, ValueError: it is of another model.
        """
        self.optimizer.load_state_dict(state["optimizer"])  # type: ignore[arg-type]
        self.teacher.load(state["teacher"])  # type: ignore[arg-type]
