"""Measure what hints add to a step on long rollouts of many turns."""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor
from transformers import PreTrainedModel

from trainer.bench.speed.long import Shape, roll_out, with_targets
from trainer.bench.speed.models import Size, save_model
from trainer.bench.speed.steps import make_learner, one_thread, time_step
from trainer.branches import branch_states, separate_states
from trainer.distill import DistillConfig
from trainer.model import ModelConfig, load_model
from trainer.objective import ObjectiveConfig
from trainer.records import Sample, Segment, Target

Branches = Callable[[PreTrainedModel, Segment, Sequence[Target]], list[Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """CPU seconds of one step."""

    rollout_s: float
    # The update without Targets, and with them.
    plain_s: float
    hinted_s: float
    # The teacher's forward passes alone: sharing what stands before, and one by one.
    shared_s: float
    separate_s: float
    num_tokens: int
    num_targets: int

    @property
    def added(self) -> float:
        """Return what hints add to the step, as a share of it."""
        return (self.hinted_s - self.plain_s) / (self.rollout_s + self.plain_s)


def measure_hints(folder: Path, *, size: Size, shape: Shape) -> Cost:
    """Sample the rollouts of a step, and train on them without Targets and with some."""
    save_model(folder / "model", size)
    model = load_model(ModelConfig(source=str(folder / "model"), device="cpu"), seed=0)
    with one_thread():
        began_s = time.process_time()
        segments = roll_out(copy.deepcopy(model), shape=shape)
        rollout_s = time.process_time() - began_s
        plain = [
            Sample(id=f"{number}/0", segment=segment, advantage=0.5 - number % 2, targets=())
            for number, segment in enumerate(segments)
        ]
        hinted = with_targets(plain, shape=shape)
        learner = make_learner(model, ObjectiveConfig(distill=DistillConfig()))
        # What a first step allocates for good belongs to no step.
        time_step(learner, hinted)
        plain_s, hinted_s = (time_step(learner, samples).cpu_s for samples in (plain, hinted))
        teacher = learner.teacher.model
        return Cost(
            rollout_s=rollout_s,
            plain_s=plain_s,
            hinted_s=hinted_s,
            shared_s=_time(branch_states, teacher, hinted),
            separate_s=_time(separate_states, teacher, hinted),
            num_tokens=sum(len(segment.ids) for segment in segments),
            num_targets=sum(len(sample.targets) for sample in hinted),
        )


def _time(branches: Branches, model: PreTrainedModel, samples: Sequence[Sample]) -> float:
    began_s = time.process_time()
    for sample in samples:
        branches(model, sample.segment, sample.targets)
    return time.process_time() - began_s
