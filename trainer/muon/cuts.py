"""Say how a parameter is cut into the matrices that are orthogonalized, each on its own.

Example: queries of heads of 128 rows are cut `Rows(size=128)`, and gates and ups of all experts in
one tensor `Experts(cut=Split(sizes=(2048, 2048), cuts=(Whole(), Whole())))`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

# Half-open.
Interval = tuple[int, int]
# Rows and columns of a part of a matrix.
Part = tuple[Interval, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The matrix as it is."""

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Yield the matrix."""
        yield rows, cols

    def __str__(self) -> str:
        return "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Blocks of rows, such as heads or groups of heads that a projection makes."""

    # Rows of a block; the rows of the matrix must be a multiple.
    size: int
    # How many blocks there must be; None for any number.
    num: int | None = None

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Yield each block."""
        yield from ((block, cols) for block in _blocks(rows, self.size, self.num, of="rows"))

    def __str__(self) -> str:
        return f"{_times(self.num)} {self.size} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Blocks of columns, such as the heads that an output projection reads."""

    # Columns of a block; the columns of the matrix must be a multiple.
    size: int
    # How many blocks there must be; None for any number.
    num: int | None = None

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Yield each block."""
        yield from ((rows, block) for block in _blocks(cols, self.size, self.num, of="columns"))

    def __str__(self) -> str:
        return f"{_times(self.num)} {self.size} columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Parts of unlike size, one below the other, such as fused queries, keys and values."""

    # Rows of each part; their sum must be the rows of the matrix.
    sizes: tuple[int, ...]
    # How each part is cut in turn.
    cuts: "tuple[Cut, ...]"

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Yield the parts of each part, from the top down."""
        for block, cut in zip(_pieces(rows, self.sizes), self.cuts, strict=True):
            yield from cut.parts(block, cols)

    def __str__(self) -> str:
        parts = zip(self.sizes, self.cuts, strict=True)
        return " + ".join(f"{size} rows ({cut})" for size, cut in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Blocks of rows that are cut in turn, such as the keys and values of each head."""

    # Rows of a block; the rows of the matrix must be a multiple.
    size: int
    # How each block is cut.
    cut: "Cut"
    # How many blocks there must be; None for any number.
    num: int | None = None

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Yield the parts of each block, from the top down."""
        for block in _blocks(rows, self.size, self.num, of="rows"):
            yield from self.cut.parts(block, cols)

    def __str__(self) -> str:
        return f"{_times(self.num)} {self.size} rows: {self.cut}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The matrices of a tensor of three dims, [experts, rows, columns]."""

    # How the matrix of each expert is cut.
    cut: "Cut"

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Refuse: experts are no part of a matrix."""
        raise ValueError(
            f"'{self}' stands inside another cut of {rows} x {cols}, expected it alone"
        )

    def __str__(self) -> str:
        return f"each expert: {self.cut}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """Not orthogonalized: AdamW trains it."""

    # Why, for people.
    reason: str

    def parts(self, rows: Interval, cols: Interval) -> Iterator[Part]:
        """Refuse: a parameter is left to AdamW as a whole."""
        raise ValueError(
            f"'{self}' stands inside another cut of {rows} x {cols}, expected it alone"
        )

    def __str__(self) -> str:
        return f"AdamW: {self.reason}"


Cut = Whole | Rows | Columns | Split | Repeat | Experts | AdamW


def _blocks(whole: Interval, size: int, num: int | None, *, of: str) -> list[Interval]:
    first, end = whole
    if size < 1 or (end - first) % size or num not in {None, (end - first) // size}:
        raise ValueError(f"{end - first} {of}, expected {_times(num)} {size}")
    return [(start, start + size) for start in range(first, end, size)]


def _times(num: int | None) -> str:
    return "any number of" if num is None else f"{num} x"


def _pieces(whole: Interval, sizes: tuple[int, ...]) -> list[Interval]:
    first, end = whole
    if sum(sizes) != end - first or min(sizes) < 1:
        raise ValueError(f"{' + '.join(map(str, sizes))} rows, expected {end - first} together")
    starts = [first + sum(sizes[:number]) for number in range(len(sizes))]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]
