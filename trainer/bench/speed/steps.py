"""Take steps of the trainer on one thread, and time each."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from trainer.credit import advantages
from trainer.feedback.targets import Feedback
from trainer.learner import Learner
from trainer.objective import ObjectiveConfig
from trainer.optimizer import OptimizerConfig
from trainer.ranks import Ranks
from trainer.records import Episode, Sample
from trainer.roll import Rolled, make_samples

# Tokens of a packed row: on CPU attention over a packed row costs its length squared.
ROW_TOKENS = 512
LR = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step took and came to."""

    cpu_s: float
    num_trained: int
    # Before clipping.
    grad_norm: float


def make_learner(model: PreTrainedModel, config: ObjectiveConfig) -> Learner:
    """Return the trainer's own learner over a model."""
    return Learner(
        model,
        objective_config=config,
        optimizer_config=OptimizerConfig(lr=LR),
        row_tokens=ROW_TOKENS,
        ranks=Ranks(),
    )


def to_samples(episodes: Sequence[Episode]) -> list[Sample]:
    """Return every Segment of valid Episodes with its advantage, and without Targets."""
    feedback = {it.id: Feedback(findings=(), hinted=(), targets={}) for it in episodes}
    rolled = Rolled(episodes=tuple(episodes), feedback=feedback, canaries=())
    return make_samples(rolled, advantages(episodes))


def time_step(learner: Learner, samples: Sequence[Sample]) -> Step:
    """Take one step on some Samples."""
    began_s = time.process_time()
    learnt = learner.learn(samples, step=0)
    return Step(
        cpu_s=time.process_time() - began_s,
        num_trained=int(learnt.denominators.tokens),
        grad_norm=learnt.grad_norm,
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
