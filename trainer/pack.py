"""Pack rows of tokens into one long row for a model.

Letters of shapes: T tokens of a packed row, L layers with a router, K experts of a token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from trainer.records import Experts, Ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """Several rows one after another, as a batch of one; a row sees itself and no other."""

    # Shape [1, T].
    input_ids_1T: Tensor
    # Shape [1, T]: from 0 again where a row begins: that is how attention keeps rows apart.
    position_ids_1T: Tensor
    # Where each row begins, and the number of all tokens: row i is `starts[i]:starts[i + 1]`.
    starts: tuple[int, ...]
    # [T, L, K], which experts are chosen, -1 where the router is free; None where it always is.
    experts_TLK: Tensor | None = None


def pack(lengths: Sequence[int], *, budget: int) -> list[list[int]]:
    """Share out rows among bins of at most `budget` tokens, first-fit decreasing.

    Returns for each bin the indices of its rows, in order. A row longer than the budget has a bin
    of its own.

    Example:
        >>> pack([5, 3, 9, 2], budget=8)
        [[0, 1], [2], [3]]
    """
    bins: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        fits = (number for number, left in enumerate(room) if left >= lengths[index])
        number = next(fits, None)
        if number is None:
            number = len(bins)
            bins.append([])
            room.append(budget)
        bins[number].append(index)
        room[number] -= lengths[index]
    return sorted(sorted(members) for members in bins)


def pack_rows(rows: Sequence[Ids], *, experts: Sequence[Experts | None] = ()) -> Packed:
    """Lay rows [T] one after another, each with positions of its own and at least one token.

    Experts [T, L, K] are those of each row; a row without any is free to choose.
    """
    lengths = [len(row) for row in rows]
    assert min(lengths, default=0) > 0, f"rows of {lengths} tokens; each must have one"
    return Packed(
        input_ids_1T=torch.from_numpy(np.concatenate(rows))[None],
        position_ids_1T=torch.cat([torch.arange(length) for length in lengths])[None],
        starts=(0, *accumulate(lengths)),
        experts_TLK=_join(experts, lengths),
    )


def _join(experts: Sequence[Experts | None], lengths: Sequence[int]) -> Tensor | None:
    shape = next((it.shape[1:] for it in experts if it is not None), None)
    if shape is None:
        return None
    free = (
        np.full((length, *shape), -1, np.int16) if it is None else it
        for it, length in zip(experts, lengths, strict=True)
    )
    return torch.from_numpy(np.concatenate(list(free)))
