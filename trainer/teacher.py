"""Own the weights that give advice: those at the start, their moving average, or the policy's."""

import copy
from collections.abc import Callable, Iterator, Sequence
from statistics import mean

import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.branches import branch_states
from trainer.canary import Canary, TeacherCollapsedError, canary_errors
from trainer.distill import DistillConfig
from trainer.forward import Model, lm_head
from trainer.model import weights
from trainer.records import Segment, Target


class Teacher:
    """The policy's older self; it owns no weights where they are `live`, or have no weight.

    Example: `teacher = Teacher(model, config); …; teacher.update(model)` after each step.
    """

    def __init__(self, model: PreTrainedModel, config: DistillConfig) -> None:
        self._config = config
        # Of each canary, when it was first looked at.
        self.first_errors: list[float] = []
        self._owns = bool(config.weight) and config.teacher != "live"
        self.model = model
        if self._owns:
            self.model = copy.deepcopy(model).requires_grad_(requires_grad=False)
            self.model.train(mode=False)
        self._reader: Model = self.model

    def share(self, place: Callable[[PreTrainedModel], Model], *, policy: Model) -> None:
        """Have ranks hold the weights together, as they hold the policy's."""
        self._reader = place(self.model) if self._owns else policy

    @property
    def reader(self) -> Model:
        """What reads rows with its weights."""
        return self._reader

    @property
    def head(self) -> Tensor:
        """Weight [V, D] that turns the states of `read` into logits."""
        return lm_head(self._reader).detach()

    def read(self, segment: Segment, targets: Sequence[Target]) -> list[Tensor]:
        """Return for each Target the hidden states [N, D] that predict its tokens after its hint.

        They carry no gradient.
        """
        return branch_states(self.model, segment, targets)

    @torch.no_grad()
    def update(self, model: PreTrainedModel) -> None:
        """Take a step of the policy into the moving average; nothing for the other kinds."""
        if not self._owns or self._config.teacher != "ema":
            return
        for mine, theirs in zip(_tensors(self.model), _tensors(model), strict=True):
            if mine.is_floating_point():
                mine.lerp_(theirs.to(mine.dtype), self._config.ema_rate)
            else:
                mine.copy_(theirs)

    def check(self, canaries: Sequence[Canary], *, temperature: float = 1.0) -> float:
        """Return the mean error on the canaries; each is held against how it was at first.

        There may be more of them each time; those that were there stay the first ones.

        Raises:
            ValueError: there are no canaries.
            TeacherCollapsedError: it is worse than at first by more than `canary_bound`.
        """
        errors = canary_errors(self._reader, canaries, temperature=temperature)
        self.first_errors += errors[len(self.first_errors) :]
        error, first = mean(errors), mean(self.first_errors)
        if error > first + self._config.canary_bound:
            raise TeacherCollapsedError(
                f"teacher {self._config.teacher}: error {error:.3f} on {len(canaries)} canaries, "
                f"{first:.3f} at first, expected at most {self._config.canary_bound:g} more"
            )
        return error

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights that it owns, by name; with `first_errors` all that it is."""
        return weights(self.model) if self._owns else {}


def _tensors(model: PreTrainedModel) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()
