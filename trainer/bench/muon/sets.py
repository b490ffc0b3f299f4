"""The sets of matrices that steps are measured on."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.nn import Parameter

from trainer.muon.batched import find_runs
from trainer.muon.cuts import Cut, Experts, Rows, Split, Whole
from trainer.muon.reference import view_of
from trainer.muon.units import Membership, Rule, sort_parameters

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSet:
    """Parameters as a model has them, and their matrices."""

    # For people.
    name: str
    shapes: Shapes
    membership: Membership


def heads(*, layers: int, num: int, rows: int, cols: int) -> MatrixSet:
    """Return projections of layers, each head a matrix."""
    shapes = {f"{layer}.q": (num * rows, cols) for layer in range(layers)}
    return _made(f"{layers * num} heads of {rows}x{cols}", shapes, Rows(size=rows))


def experts(*, num: int, rows: int, cols: int) -> MatrixSet:
    """Return a layer's experts: gate and up in one tensor, and down."""
    both = Split(sizes=(rows, rows), cuts=(Whole(), Whole()))
    shapes = {"gate_up": (num, 2 * rows, cols), "down": (num, cols, rows)}
    rules = {"gate_up": Experts(cut=both), "down": Experts(cut=Whole())}
    return _made(f"{num} experts of {rows}x{cols}", shapes, rules)


def random_parameters(shapes: Shapes) -> dict[str, Parameter]:
    """Return parameters with gradients, always the same."""
    draw = torch.Generator().manual_seed(0)
    named = {
        name: Parameter(torch.randn(shape, generator=draw) * 0.02) for name, shape in shapes.items()
    }
    for it in named.values():
        it.grad = torch.randn(it.shape, generator=draw)
    return named


def apart(matrices: MatrixSet) -> list[Parameter]:
    """Return each matrix of a set as a parameter of its own."""
    named = random_parameters(matrices.shapes)
    found = []
    for unit in matrices.membership.units:
        whole = named[unit.parameter]
        assert whole.grad is not None
        found.append(_parameter(view_of(whole.data, unit), view_of(whole.grad, unit)))
    return found


def stacked(matrices: MatrixSet) -> list[Parameter]:
    """Return the matrices of a set as parameters [num, rows, columns] of matrices of one shape."""
    named = random_parameters(matrices.shapes)
    found = []
    for name, units in matrices.membership.muon.items():
        *_, rows, cols = matrices.shapes[name]
        whole = named[name]
        assert whole.grad is not None
        runs = find_runs(units, rows=rows, row_stride=cols)
        found += [_parameter(it.view_of(whole.data), it.view_of(whole.grad)) for it in runs]
    return found


def _made(name: str, shapes: Shapes, cuts: Cut | Mapping[str, Cut]) -> MatrixSet:
    rules = [
        Rule(pattern=it.replace(".", r"\."), cut=cuts[it] if isinstance(cuts, Mapping) else cuts)
        for it in shapes
    ]
    return MatrixSet(name=name, shapes=shapes, membership=sort_parameters(shapes, rules))


def _parameter(weights: torch.Tensor, grad: torch.Tensor) -> Parameter:
    parameter = Parameter(weights.clone())
    parameter.grad = grad.clone()
    return parameter
