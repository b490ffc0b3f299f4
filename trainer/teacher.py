"""Own the weights that give advice: those at the start, their moving average, or the policy's."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.branches import branch_states
from trainer.canary import Canary, TeacherCollapsedError, canary_errors
from trainer.distill import DistillConfig
from trainer.forward import lm_head
from trainer.records import Segment, Target

# In a saved state, the name of the errors at first; no weight is called that.
_START = "errors at first"


class Teacher:
    """The policy's older self; it owns no weights where they are `live`, or have no weight.

    Example: `teacher = Teacher(model, config); …; teacher.update(model)` after each step.
    """

    def __init__(self, model: PreTrainedModel, config: DistillConfig) -> None:
        self._config = config
        # Of each canary, when it was first looked at.
        self._first_errors: list[float] = []
        self._owns = bool(config.weight) and config.teacher != "live"
        self.model = model
        if self._owns:
            self.model = copy.deepcopy(model).requires_grad_(requires_grad=False)
            self.model.train(mode=False)

    @property
    def head(self) -> Tensor:
        """Weight [V, D] that turns the states of `read` into logits."""
        return lm_head(self.model).detach()

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
        errors = canary_errors(self.model, canaries, temperature=temperature)
        self._first_errors += errors[len(self._first_errors) :]
        error, first = mean(errors), mean(self._first_errors)
        if error > first + self._config.canary_bound:
            raise TeacherCollapsedError(
                f"teacher {self._config.teacher}: error {error:.3f} on {len(canaries)} canaries, "
                f"{first:.3f} at first, expected at most {self._config.canary_bound:g} more"
            )
        return error

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold for `load` to go on from here, to the bit."""
        owned = dict(self.model.state_dict()) if self._owns else {}
        if self._first_errors:
            owned[_START] = torch.tensor(self._first_errors, dtype=torch.float64)
        return owned

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state.

        Raises:
            RuntimeError: it is that of another model.
        """
        weights = dict(state)
        first_errors = weights.pop(_START, None)
        self._first_errors = [] if first_errors is None else first_errors.tolist()
        if self._owns:
            self.model.load_state_dict(weights)


def _tensors(model: PreTrainedModel) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()
