"""Share the tokens of a packed row among ranks, each of which attends to the keys of all.

Keys and values are gathered, so a rank holds those of the whole row for the time of a layer; what
it computes and keeps for the gradient is of its own tokens alone.

Letters of shapes: T tokens of the whole row, S tokens of this rank, H heads, W width of a head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from trainer.pack import Packed

# What transformers calls the function below.
NAME = "regrow_context_parallel"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What one rank has of a packed row."""

    # [1, S].
    input_ids_1S: Tensor
    position_ids_1S: Tensor
    # Of the whole row: tokens `start` to `end` are this rank's; padding follows the last rank's.
    start: int
    end: int
    # [T], with padding: which row each token is of, and its place there.
    rows_T: Tensor
    places_T: Tensor
    # Tokens that are this rank's, padding included.
    own: slice

    def mask(self) -> Tensor:
        """Return where each token of this rank may attend, [S, T]."""
        is_same_ST = self.rows_T[self.own, None] == self.rows_T
        return is_same_ST & (self.places_T[self.own, None] >= self.places_T)


def part_of(packed: Packed, *, rank: int, world: int) -> Part:
    """Cut a packed row into equal parts of neighbouring tokens, the last one padded."""
    length = packed.starts[-1]
    each = -(-length // world)
    missing = each * world - length
    # Padding is a row of its own behind the others.
    rows_T = torch.bucketize(
        torch.arange(each * world), torch.tensor(packed.starts[1:]), right=True
    )
    ids_T = nn.functional.pad(packed.input_ids_1T[0], (0, missing))
    places_T = torch.cat([packed.position_ids_1T[0], torch.arange(missing)])
    own = slice(rank * each, (rank + 1) * each)
    return Part(
        input_ids_1S=ids_T[None, own],
        position_ids_1S=places_T[None, own],
        start=min(own.start, length),
        end=min(own.stop, length),
        rows_T=rows_T,
        places_T=places_T,
        own=own,
    )


@contextmanager
def sharing(part: Part, group: dist.ProcessGroup) -> Iterator[None]:
    """Have attention see the whole row while a model runs on a part, also in its backward pass."""
    _SHARED.append((part.mask(), group))
    try:
        yield
    finally:
        _SHARED.pop()


# Attention is a function of transformers' registry, which hands it no more than tensors.
_SHARED: list[tuple[Tensor, dist.ProcessGroup]] = []


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attend [1, H, S, W] to the keys of all ranks; return [1, S, H, W]."""
    del module, attention_mask
    mask_ST, group = _SHARED[-1]
    keys, values = gather_tokens(key, group), gather_tokens(value, group)
    attended = nn.functional.scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=mask_ST.to(query.device),
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return attended.transpose(1, 2).contiguous(), None


def gather_tokens(states: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Return the states [1, H, T, W] of all ranks of a group, from those [1, H, S, W] of each."""
    return cast("Tensor", _Gather.apply(states, group))


class _Way(Protocol):
    """What torch keeps for a backward pass: the ranks that took part."""

    way: dist.ProcessGroup


class _Gather(torch.autograd.Function):
    """Gather along tokens; the gradients of all ranks are added up on their way back."""

    @staticmethod
    def forward(ctx: _Way, states: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.way = group
        size = dist.get_world_size(group)
        by_token = states.transpose(0, 2).contiguous()
        out = by_token.new_empty(size * len(by_token), *by_token.shape[1:])
        dist.all_gather_single(out, by_token, group=group)
        return out.transpose(0, 2)

    @staticmethod
    def backward(ctx: _Way, *gradients: Tensor) -> tuple[Tensor, None]:
        size = dist.get_world_size(ctx.way)
        by_token = gradients[0].transpose(0, 2).contiguous()
        out = by_token.new_empty(len(by_token) // size, *by_token.shape[1:])
        dist.reduce_scatter_single(out, by_token, group=ctx.way)
        return out.transpose(0, 2), None


def _no_mask(*_: object, **__: object) -> None:
    """Leave the mask to the attention itself, which knows the whole row."""


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, _no_mask)
