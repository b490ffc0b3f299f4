"""Say which rank holds which part of a parameter: arithmetic alone, nothing is asked of torch.

Letters: E experts, R rows, C columns.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainer.muon.cuts import Interval
from trainer.muon.units import Box, Shape3, three_dims


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """Every rank along an axis of the mesh holds the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The ranks along an axis of the mesh hold one chunk each of a dim of the tensor."""

    # Counted from the front of the tensor as it is, of two or three dims.
    dim: int
    # Cuts what the axes to its right have cut before, as `fully_shard` does after expert parallel.
    is_strided: bool = False


Placement = Replicate | Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a parameter that ranks hold."""

    box: Box
    # One a copy of the parameter, in the order of the mesh: the ranks at one place of this list
    # hold a whole copy between them.
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a parameter is.

    Example: `Layout(parameter="gate", shape=(1, 4, 8), pieces=(Piece(box=upper, ranks=(0, 2)),
    Piece(box=lower, ranks=(1, 3))))` is in two copies, each on two ranks.
    """

    parameter: str
    shape: Shape3
    # They cover the parameter, none twice; ranks that hold nothing are not named.
    pieces: tuple[Piece, ...]


def lay_out(
    parameter: str,
    shape: tuple[int, ...],
    *,
    mesh: NDArray[np.int64],
    placements: tuple[Placement, ...],
) -> Layout:
    """Return who holds what of a parameter that torch places so on a mesh of ranks.

    A dim is cut as `torch.chunk` does: into chunks of the ceiling of its size over the axis, so
    that the last ranks may hold less or nothing.

    Raises:
        ValueError: there is not one placement an axis, or a placement names a dim that is not
            there.

    Example:
        >>> mesh = np.arange(4).reshape(2, 2)
        >>> it = lay_out("gate", (3, 8), mesh=mesh, placements=(Replicate(), Shard(dim=0)))
        >>> [(piece.box.rows, piece.ranks) for piece in it.pieces]
        [((0, 2), (0, 2)), ((2, 3), (1, 3))]
    """
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"{parameter}: {len(placements)} placements on a mesh of {mesh.ndim} axes, "
            "expected one an axis"
        )
    for placement in placements:
        if isinstance(placement, Shard) and not 0 <= placement.dim < len(shape):
            raise ValueError(f"{parameter} {list(shape)}: {placement}, expected one of its dims")
    ranks = tuple(map(int, mesh.flat))
    return Layout(
        parameter=parameter,
        shape=three_dims(shape),
        pieces=_pieces(shape, mesh.shape, ranks, placements),
    )


def box_of(layout: Layout, rank: int) -> Box | None:
    """Return what a rank holds, None for nothing."""
    return next((piece.box for piece in layout.pieces if rank in piece.ranks), None)


@lru_cache(maxsize=4096)  # The layers of a model are alike, and share what they are laid out as.
def _pieces(
    shape: tuple[int, ...],
    mesh_shape: tuple[int, ...],
    ranks: tuple[int, ...],
    placements: tuple[Placement, ...],
) -> tuple[Piece, ...]:
    holders: dict[Box, list[int]] = {}
    for place, rank in zip(np.ndindex(mesh_shape), ranks, strict=True):
        chunks = [_chunks(dim, mesh_shape, place, placements) for dim in range(len(shape))]
        intervals = [_interval(size, cut) for size, cut in zip(shape, chunks, strict=True)]
        if all(start < end for start, end in intervals):
            experts, rows, cols = ((0, 1), *intervals)[-3:]
            holders.setdefault(Box(experts=experts, rows=rows, cols=cols), []).append(rank)
    return tuple(Piece(box=box, ranks=tuple(holders[box])) for box in sorted(holders))


def _interval(size: int, chunks: Iterable[tuple[int, int]]) -> Interval:
    """Return what is left of a dim after taking chunk i of n, of each (i, n) in turn."""
    start, end = 0, size
    for number, num_chunks in chunks:
        length = -(-(end - start) // num_chunks)
        start = min(start + number * length, end)
        end = min(start + length, end)
    return start, end


def _chunks(
    dim: int,
    mesh_shape: tuple[int, ...],
    place: tuple[int, ...],
    placements: tuple[Placement, ...],
) -> Iterator[tuple[int, int]]:
    """Yield which chunk of how many a place of the mesh has of a dim, for each axis that cuts it.

    The first to cut comes first: strided ones last, from the right.
    """
    cutting = [
        (axis, placement.is_strided)
        for axis, placement in enumerate(placements)
        if isinstance(placement, Shard) and placement.dim == dim
    ]
    yield from ((place[axis], mesh_shape[axis]) for axis, strided in cutting if not strided)
    yield from ((place[axis], mesh_shape[axis]) for axis, strided in reversed(cutting) if strided)
