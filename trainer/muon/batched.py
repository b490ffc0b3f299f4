"""Muon in one process: matrices of one shape are orthogonalized together, as many as a cache holds.

Momentum, products and step of a chunk of matrices follow each other while the cache has them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from trainer.muon.apply import apply_unit, are_finite, settle, update_of
from trainer.muon.config import MuonConfig, NewtonSchulzConfig
from trainer.muon.orthogonalize import Scratch, orthogonalize, wire_dtype
from trainer.muon.units import Membership, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Units of one parameter and one shape that lie equally far apart in memory."""

    parameter: str
    num: int
    # Rows and columns of each.
    shape: tuple[int, int]
    # Elements from the parameter's first to the first unit's, from unit to unit, from row to row.
    offset: int
    unit_stride: int
    row_stride: int

    def part(self, first: int, end: int) -> "Run":
        """Return some of its units."""
        return Run(
            parameter=self.parameter,
            num=end - first,
            shape=self.shape,
            offset=self.offset + first * self.unit_stride,
            unit_stride=self.unit_stride,
            row_stride=self.row_stride,
        )

    def view_of(self, tensor: Tensor) -> Tensor:
        """Return the matrices [num, R, C] of what has the parameter's shape and is contiguous."""
        strides = (self.unit_stride, self.row_stride, 1)
        return tensor.as_strided(
            (self.num, *self.shape), strides, tensor.storage_offset() + self.offset
        )


class Muon(torch.optim.Optimizer):
    """Muon over the parameters that a membership names; it has the bits of `ReferenceMuon`.

    The rate is that of its one group, as with other optimizers; momentum is there from the start.

    Raises:
        ValueError: a parameter is not contiguous.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], membership: Membership, config: MuonConfig
    ) -> None:
        self.config = config
        self._named = {name: parameters[name] for name in membership.muon}
        super().__init__([{"params": list(self._named.values())}], {"lr": config.lr})
        for name, parameter in self._named.items():
            if not parameter.is_contiguous():
                raise ValueError(f"{name}: is not contiguous in memory, expected that it is")
            self.state[parameter]["momentum_buffer"] = torch.zeros_like(
                parameter, dtype=torch.float32
            )
        runs = [
            run
            for name, units in membership.muon.items()
            for run in find_runs(
                units, row_stride=parameters[name].shape[-1], rows=parameters[name].shape[-2]
            )
        ]
        self._scratch = Scratch()
        self._chunks = tuple(_chunks(runs, config.orthogonalize))

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step; a parameter without a gradient has one of zeros."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        grads = {
            name: torch.zeros_like(it) if it.grad is None else it.grad.contiguous()
            for name, it in self._named.items()
        }
        for chunk in self._chunks:
            self._step(chunk, grads)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave; momentum stays in fp32, whatever the parameters are in."""
        super().load_state_dict(state_dict)
        for number, parameter in enumerate(self._named.values()):
            momentum = state_dict["state"][number]["momentum_buffer"]
            self.state[parameter]["momentum_buffer"] = momentum.to(
                parameter.device, torch.float32, copy=True
            )

    def _step(self, chunk: tuple[Run, ...], grads: Mapping[str, Tensor]) -> None:
        shape, lr = chunk[0].shape, self.param_groups[0]["lr"]
        nums = [run.num for run in chunk]
        wire = grads[chunk[0].parameter].new_empty(0, dtype=wire_dtype(self.config.orthogonalize))
        matrices_BRC = self._scratch.take("matrices", (sum(nums), *shape), like=wire)
        for run, matrices in zip(chunk, matrices_BRC.split(nums), strict=True):
            momentum = self.state[self._named[run.parameter]]["momentum_buffer"]
            grad = run.view_of(grads[run.parameter])
            update = self._scratch.take("update", grad.shape, like=momentum)
            matrices.copy_(update_of(grad, run.view_of(momentum), self.config, out=update))
        done_BRC = orthogonalize(
            matrices_BRC, config=self.config.orthogonalize, scratch=self._scratch
        )
        for run, matrices in zip(chunk, self._widened(done_BRC).split(nums), strict=True):
            weights = run.view_of(self._named[run.parameter])
            if are_finite(matrices):
                apply_unit(weights, matrices, shape, lr, self.config)
                continue
            momentum = run.view_of(self.state[self._named[run.parameter]]["momentum_buffer"])
            for some in zip(weights, momentum, matrices, strict=True):
                settle(*some, unit_shape=shape, lr=lr, config=self.config)

    def _widened(self, done_BRC: Tensor) -> Tensor:
        """Return the same numbers in fp32 at least, where a step would make a new copy of them."""
        dtype = torch.promote_types(done_BRC.dtype, torch.float32)
        wide = done_BRC.new_empty(0, dtype=dtype)
        return self._scratch.take("update", done_BRC.shape, like=wide).copy_(done_BRC)


def find_runs(units: Iterable[Unit], *, rows: int, row_stride: int) -> Iterator[Run]:
    """Yield runs of the units of one parameter, whose matrices have so many rows and columns."""
    by_shape: dict[tuple[int, int], list[tuple[int, Unit]]] = {}
    for unit in units:
        (expert, _), (row, _), (col, _) = unit.box.experts, unit.box.rows, unit.box.cols
        offset = (expert * rows + row) * row_stride + col
        by_shape.setdefault(unit.shape, []).append((offset, unit))
    for shape, placed in by_shape.items():
        offsets = [offset for offset, _ in placed]
        first = 0
        while first < len(offsets):
            num = _num_even(offsets[first:])
            yield Run(
                parameter=placed[0][1].parameter,
                num=num,
                shape=shape,
                offset=offsets[first],
                unit_stride=offsets[first + 1] - offsets[first] if num > 1 else 0,
                row_stride=row_stride,
            )
            first += num


def _num_even(offsets: list[int]) -> int:
    """Return how many of the first offsets are equally far apart."""
    steps = [after - before for before, after in pairwise(offsets)]
    return 1 + next((i for i, step in enumerate(steps) if step != steps[0]), len(steps))


def _chunks(runs: Iterable[Run], config: NewtonSchulzConfig) -> Iterator[tuple[Run, ...]]:
    by_shape: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        by_shape.setdefault(run.shape, []).append(run)
    for (rows, cols), alike in by_shape.items():
        matrix_bytes = rows * cols * wire_dtype(config).itemsize
        yield from _filled(alike, max(1, config.chunk_bytes // matrix_bytes))


def _filled(runs: Iterable[Run], limit: int) -> Iterator[tuple[Run, ...]]:
    chunk: list[Run] = []
    room = limit
    for run in runs:
        first = 0
        while first < run.num:
            end = min(run.num, first + room)
            chunk.append(run.part(first, end))
            room -= end - first
            first = end
            if not room:
                yield tuple(chunk)
                chunk, room = [], limit
    if chunk:
        yield tuple(chunk)
