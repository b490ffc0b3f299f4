"""Let implementations of Muon step by turns on one thread, and time each."""

import importlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from trainer.bench.muon.sets import MatrixSet, apart, random_parameters, stacked
from trainer.muon.batched import Muon
from trainer.muon.config import MuonConfig, NewtonSchulzConfig
from trainer.muon.flops import flops
from trainer.muon.reference import ReferenceMuon

# All have these conventions, so that each does the same arithmetic: five steps, in bf16.
LR, DECAY = 1e-3, 0.1
_OURS = MuonConfig(lr=LR, weight_decay=DECAY, momentum_form="ema", scale="original")
_PLAIN = _OURS.model_copy(update={"orthogonalize": NewtonSchulzConfig(form="plain")})
OURS, LOOP, TORCH, DION = "ours", "matrix by matrix", "torch.optim.Muon", "dion"
# Side of the square matrices whose product shows what the CPU can do.
_SQUARE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """CPU seconds of each round."""

    matrices: MatrixSet
    # By implementation, of a step.
    step_s: Mapping[str, list[float]]
    # Floating-point operations a CPU second of a large product in bf16.
    product_rate: list[float]

    @property
    def flops(self) -> int:
        """Floating-point operations of the products of one step."""
        config = NewtonSchulzConfig(form="plain")
        return sum(flops(*it.shape, config=config) for it in self.matrices.membership.units)

    def speed(self, name: str, *, over: str) -> float:
        """Return how often as fast one is as another: the median of the rounds."""
        pairs = zip(self.step_s[over], self.step_s[name], strict=True)
        return median(theirs / ours for theirs, ours in pairs)

    def share(self, name: str) -> float:
        """Return the rate of a step over that of a large product: the median of the rounds."""
        pairs = zip(self.step_s[name], self.product_rate, strict=True)
        return median(self.flops / step_s / rate for step_s, rate in pairs)


def time_rounds(matrices: MatrixSet, *, num_rounds: int, dion: Path | None) -> Timed:
    """Return what a step takes in each of some rounds, after one that is not counted.

    `dion` is a checkout of microsoft/dion.

    Raises:
        ValueError: there is no dion in it that can be imported.
    """
    steps = _implementations(matrices, dion=dion)
    step_s: dict[str, list[float]] = {name: [] for name in steps}
    rates = []
    for _ in range(num_rounds + 1):
        rates.append(_product_rate())
        for name, step in steps.items():
            step_s[name].append(_seconds(step))
    counted = {name: times[1:] for name, times in step_s.items()}
    return Timed(matrices=matrices, step_s=counted, product_rate=rates[1:])


def _implementations(matrices: MatrixSet, *, dion: Path | None) -> dict[str, Callable[[], Any]]:
    named, again, third = (random_parameters(matrices.shapes) for _ in range(3))
    torchs = torch.optim.Muon(apart(matrices), lr=LR, weight_decay=DECAY)
    found: dict[str, Callable[[], Any]] = {
        OURS: Muon(named, matrices.membership, _OURS).step,
        f"{OURS}, plain": Muon(again, matrices.membership, _PLAIN).step,
        LOOP: ReferenceMuon(third, matrices.membership, _OURS).step,
        TORCH: torchs.step,
    }
    if dion is not None:
        optimizer = load_dion(dion)(stacked(matrices), lr=LR, weight_decay=DECAY, nesterov=True)
        found[DION] = optimizer.step
    return found


def load_dion(folder: Path) -> Callable[..., torch.optim.Optimizer]:
    """Return the class Muon of a checkout of microsoft/dion.

    Raises:
        ValueError: it cannot be imported.
    """
    sys.path.insert(0, str(folder))
    try:
        muon: Callable[..., torch.optim.Optimizer] = importlib.import_module("dion").Muon
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{folder}: {error}, expected a checkout of github.com/microsoft/dion"
        ) from None
    finally:
        sys.path.remove(str(folder))
    return muon


def _seconds(step: Callable[[], Any]) -> float:
    began_s = time.process_time()
    step()
    return time.process_time() - began_s


def _product_rate() -> float:
    square = torch.ones(_SQUARE, _SQUARE, dtype=torch.bfloat16)
    product_s = min(_seconds(lambda: square @ square) for _ in range(5))
    return 2 * _SQUARE**3 / product_s
