"""A player of the toy world that replies as a demonstrator does."""

import torch
from torch import Generator, Tensor

from trainer.bench.targeted.demonstrations import Noise, spoilt


class Careless:
    """Calls what is right, but for some wrong names and arguments."""

    def __init__(self, noise: Noise, *, draw: Generator) -> None:
        self.noise = noise
        self.draw = draw

    def reply(self, read_BL: Tensor, right_B3: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the right call, or one with a wrong name or argument."""
        replies_B3 = spoilt(right_B3, self.noise.wrong_name, noise=self.noise, draw=self.draw)
        return replies_B3, torch.zeros(replies_B3.shape)

    def keep(self, rows: Tensor) -> None:
        """Go on; nothing is remembered of any row."""
