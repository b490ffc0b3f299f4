"""Find who holds what of each unit.

Letters of shapes: P pieces of a layout, F fragments of a unit, R copies.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from trainer.muon.jobs import Fragments, Ints
from trainer.muon.layout import Layout, Piece
from trainer.muon.units import Box, Unit


def find_fragments(
    units: Iterable[Unit], layouts: Mapping[str, Layout]
) -> tuple[tuple[int, ...], tuple[Fragments, ...]]:
    """Return for each unit the number of its fragments in the second list.

    Units at one place of parameters that are laid out alike have the same fragments.

    Raises:
        ValueError: a parameter has no layout, or one that does not cover it.
    """
    patterns: list[int] = []
    numbers: dict[tuple[int, Box], int] = {}
    found: list[Fragments] = []
    pieces = _PiecesByContent()
    for unit in units:
        if unit.parameter not in layouts:
            raise ValueError(f"{unit.parameter}: has no layout, expected one for each unit")
        number, boxes, ranks = pieces.arrays(layouts[unit.parameter])
        key = (number, unit.box)
        if key not in numbers:
            numbers[key] = len(found)
            found.append(_fragments(unit, boxes, ranks))
        patterns.append(numbers[key])
    return tuple(patterns), tuple(found)


def box_row(box: Box) -> tuple[int, ...]:
    """Return a box as its six numbers."""
    return (*box.experts, *box.rows, *box.cols)


def row_box(row: Ints) -> Box:
    """Return the box of six numbers."""
    a, b, c, d, e, f = map(int, row)
    return Box(experts=(a, b), rows=(c, d), cols=(e, f))


def numel(boxes: Ints) -> Ints:
    """Return the number of elements of each box, [..., 6]."""
    sizes: Ints = (boxes[..., 1::2] - boxes[..., ::2]).prod(axis=-1)
    return sizes


class _PiecesByContent:
    """The pieces of layouts as arrays, once for all layouts that have the same."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Piece, ...], int] = {}
        # By identity first: hashing thousands of pieces for each parameter takes long.
        self._seen: dict[int, int] = {}
        self._arrays: list[tuple[Ints, Ints]] = []

    def arrays(self, layout: Layout) -> tuple[int, Ints, Ints]:
        """Return a number, the boxes [P, 6] and their ranks [P, R] of a layout."""
        key = id(layout.pieces)
        if key not in self._seen:
            number = self._numbers.setdefault(layout.pieces, len(self._numbers))
            if number == len(self._arrays):
                self._arrays.append(_arrays(layout))
            self._seen[key] = number
        number = self._seen[key]
        return number, *self._arrays[number]


def _arrays(layout: Layout) -> tuple[Ints, Ints]:
    copies = {len(piece.ranks) for piece in layout.pieces}
    held = sum(piece.box.numel for piece in layout.pieces)
    experts, rows, cols = layout.shape
    if len(copies) != 1 or held != experts * rows * cols:
        raise ValueError(
            f"{layout.parameter} {list(layout.shape)}: its pieces hold {held} elements in "
            f"{sorted(copies)} copies, expected all of it, each piece in as many copies"
        )
    boxes = np.array([box_row(piece.box) for piece in layout.pieces], dtype=np.int64)
    return boxes, np.array([piece.ranks for piece in layout.pieces], dtype=np.int64)


def _fragments(unit: Unit, boxes_P6: Ints, ranks_PR: Ints) -> Fragments:
    box = np.array(box_row(unit.box), dtype=np.int64)
    both = np.empty_like(boxes_P6)
    both[:, ::2] = np.maximum(boxes_P6[:, ::2], box[::2])
    both[:, 1::2] = np.minimum(boxes_P6[:, 1::2], box[1::2])
    is_held = (both[:, ::2] < both[:, 1::2]).all(axis=1)
    return Fragments(boxes=both[is_held], ranks=ranks_PR[is_held])
