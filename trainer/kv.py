"""Keys and values of contexts that are continued side by side, each from position 0 on.

With them goes which experts every token was given. Letters of shapes: B contexts, S new tokens of
each, H heads, C tokens that fit, L tokens attended to, W width of a head, R layers with a router,
K experts of a token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache

from trainer.invariant import GRAIN, round_up
from trainer.records import Ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """Keys and values of one context, outside any batch."""

    # Of each token.
    ids: Ids
    # Of each layer, keys and values: [H, tokens, W].
    layers: tuple[tuple[Tensor, Tensor], ...]
    # [tokens, R, K], the experts of each token; R is 0 in a dense model.
    experts: Tensor

    @property
    def num_bytes(self) -> int:
        """Memory of the keys and values, and of the experts."""
        return self.experts.nbytes + sum(it.nbytes for pair in self.layers for it in pair)


class Rows(Cache):
    """Keys and values of a batch, as transformers' models fill it.

    Each context has its own length, its tokens stand at their own positions, and nothing is padded
    on the left. What is computed may have more rows than there are contexts: these come last, are
    there for the products' sake, and keep no keys.
    """

    def __init__(
        self, *, lengths: Sequence[int], capacity: int, starts: Sequence[Kept | None] = ()
    ) -> None:
        """Begin with the first tokens of what was kept, as many of each as `lengths` says."""
        super().__init__(layers=[])
        self.lengths = list(lengths)
        self.capacity = capacity
        # Of each layer, keys and values: [B, H, C, W].
        self.tensors: list[tuple[Tensor, Tensor]] = []
        # [B, C, R, K].
        self.experts = torch.empty(len(lengths), capacity, 0, 0, dtype=torch.int16)
        self._starts = starts
        self._places_BS = torch.empty(0)
        self._shown = 0

    @property
    def bytes_per_token(self) -> int:
        """Memory of one token of one context."""
        total = sum(it.nbytes for pair in self.tensors for it in pair)
        return total // (len(self.lengths) * self.capacity)

    @property
    def has_room(self) -> bool:
        """Tell whether one more token of each context fits."""
        return round_up(max(self.lengths) + 1, GRAIN) <= self.capacity

    def feed(
        self, num_new: int, *, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Make room for new tokens of each context.

        Returns their positions [B, S], and the mask [B, 1, S, L]: 0 where they attend, else -inf.
        """
        self._shown = round_up(max(self.lengths) + num_new, GRAIN)
        assert self._shown <= self.capacity, f"{self._shown} tokens, room for {self.capacity}"
        lengths_B1 = torch.tensor(self.lengths, device=device)[:, None]
        self._places_BS = lengths_B1 + torch.arange(num_new, device=device)
        is_later_BSL = torch.arange(self._shown, device=device) > self._places_BS[:, :, None]
        mask_BSL = torch.zeros(is_later_BSL.shape, device=device, dtype=dtype)
        return self._places_BS, mask_BSL.masked_fill_(is_later_BSL, -torch.inf)[:, None]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: object, **__: object
    ) -> tuple[Tensor, Tensor]:
        """Write the new tokens of a layer; return what may be attended to, [B, H, L, W] each."""
        if layer_idx == len(self.tensors):
            self.tensors.append((self._begin(key_states, 0), self._begin(value_states, 1)))
        keys, values = self.tensors[layer_idx]
        self._write(keys, key_states)
        self._write(values, value_states)
        return keys[:, :, : self._shown], values[:, :, : self._shown]

    def note(self, chosen: Sequence[Tensor]) -> None:
        """Write which experts the new tokens were given, [B * S, K] for each router."""
        chosen_BSRK = torch.stack(list(chosen), dim=1).unflatten(0, (-1, self._places_BS.shape[1]))
        if not self.experts.shape[2]:
            self.experts = self._begin_experts(chosen_BSRK)
        rows_B1 = torch.arange(len(self.lengths), device=chosen_BSRK.device)[:, None]
        new_BSRK = chosen_BSRK[: len(self.lengths)].to(torch.int16)
        self.experts[rows_B1, self._places_BS] = new_BSRK

    def keep(self, row: int, ids: Ids) -> Kept:
        """Return a copy of the first tokens of a context, as many as ids."""
        layers = ((keys[row], values[row]) for keys, values in self.tensors)
        pairs = ((keys[:, : len(ids)], values[:, : len(ids)]) for keys, values in layers)
        return Kept(
            ids=ids,
            layers=tuple((keys.clone(), values.clone()) for keys, values in pairs),
            experts=self.experts[row, : len(ids)].clone(),
        )

    def _begin(self, states: Tensor, side: int) -> Tensor:
        _, heads, _, width = states.shape
        # Zeros: what is masked is multiplied by 0, and must be finite.
        whole = states.new_zeros(len(self.lengths), heads, self.capacity, width)
        for row, (start, length) in enumerate(zip(self._starts, self.lengths, strict=False)):
            if start is not None:
                layer = start.layers[len(self.tensors)]
                whole[row, :, :length] = layer[side][:, :length]
        return whole

    def _begin_experts(self, chosen_BSRK: Tensor) -> Tensor:
        whole = chosen_BSRK.new_zeros(
            len(self.lengths), self.capacity, *chosen_BSRK.shape[2:], dtype=torch.int16
        )
        for row, (start, length) in enumerate(zip(self._starts, self.lengths, strict=False)):
            if start is not None:
                whole[row, :length] = start.experts[:length]
        return whole

    def _write(self, whole: Tensor, states: Tensor) -> None:
        rows_B1 = torch.arange(len(self.lengths), device=whole.device)[:, None]
        new_BSHW = states[: len(self.lengths)].transpose(1, 2)
        whole.transpose(1, 2)[rows_B1, self._places_BS] = new_BSHW


def join(parts: Sequence[tuple[Rows, Sequence[int]]], *, capacity: int) -> Rows:
    """Return a batch of the contexts of others, given by their rows; a row may come twice."""
    joined = Rows(
        lengths=[rows.lengths[row] for rows, chosen in parts for row in chosen], capacity=capacity
    )
    layers = zip(*(rows.tensors for rows, _ in parts), strict=True)
    for pairs in layers:
        keys, values = (
            _join([pair[side] for pair in pairs], [chosen for _, chosen in parts], joined)
            for side in range(2)
        )
        joined.tensors.append((keys, values))
    joined.experts = _join_experts(parts, joined)
    return joined


def _join_experts(parts: Sequence[tuple[Rows, Sequence[int]]], joined: Rows) -> Tensor:
    of_each = [rows.experts[list(chosen)] for rows, chosen in parts]
    out = of_each[0].new_zeros(len(joined.lengths), joined.capacity, *of_each[0].shape[2:])
    used, at = max(joined.lengths), 0
    for some in (it[:, :used] for it in of_each):
        out[at : at + len(some), : some.shape[1]] = some
        at += len(some)
    return out


def _join(wholes: Sequence[Tensor], chosen: Sequence[Sequence[int]], joined: Rows) -> Tensor:
    _, heads, _, width = wholes[0].shape
    out = wholes[0].new_zeros(len(joined.lengths), heads, joined.capacity, width)
    used, at = max(joined.lengths), 0
    for whole, rows in zip(wholes, chosen, strict=True):
        some = whole[list(rows), :, :used]
        out[at : at + len(rows), :, : some.shape[2]] = some
        at += len(rows)
    return out
