"""Take steps of the trainer on one thread, and time each."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from trainer.credit import advantages
from trainer.objective import ObjectiveConfig, Scored, count, objective
from trainer.pack import pack
from trainer.records import Episode, Sample
from trainer.teacher import Teacher

# Tokens of a packed row: on CPU attention over a packed row costs its length squared.
ROW_TOKENS = 512
LR = 1e-5
MAX_GRAD_NORM = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step took and came to."""

    cpu_s: float
    num_trained: int
    # Before clipping.
    grad_norm: float


def to_samples(episodes: Sequence[Episode]) -> list[Sample]:
    """Return every Segment of valid Episodes with its advantage, and without Targets."""
    credit = advantages(episodes)
    return [
        Sample(
            id=f"{episode.id}/{number}",
            segment=segment,
            advantage=credit[episode.id],
            targets=(),
        )
        for episode in episodes
        if episode.is_valid
        for number, segment in enumerate(episode.segments)
    ]


class Stepper:
    """A model with its optimizer and teacher."""

    def __init__(self, model: PreTrainedModel, config: ObjectiveConfig) -> None:
        self.model = model.train()
        self.teacher = Teacher(model, config.distill)
        self._config = config
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.0
        )

    def step(self, samples: Sequence[Sample]) -> Step:
        """Take one step on some Samples."""
        began_s = time.process_time()
        counts = count(samples)
        for row in pack([len(it.segment.ids) for it in samples], budget=ROW_TOKENS):
            loss, _ = objective(
                self.model,
                [Scored(sample=samples[number]) for number in row],
                teacher=self.teacher,
                denominators=counts,
                config=self._config,
            )
            torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.teacher.update(self.model)
        return Step(
            cpu_s=time.process_time() - began_s,
            num_trained=int(counts.tokens),
            grad_norm=float(norm),
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
