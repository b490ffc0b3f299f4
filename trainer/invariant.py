"""Attention and experts whose sums for one token do not depend on the tokens beside it.

Letters of shapes: B contexts, S new tokens of each, H heads, L tokens attended to, W width of a
head, T tokens, D width of the model, K experts of a token.

Measured with MKL on CPU (torch 2.13): the rows of a matrix product are the same to the bit whatever
their number, from 16 on, or from a sixteenth of the width of an attention's head on; and attention
is when it looks at a multiple of 512 tokens, its own block, those past the end of a context masked.
On a GPU this does not hold, and the extra rows of the experts are left out.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.moe import ExpertsInterface, grouped_mm_experts_forward
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

# A matrix product has at least so many rows.
MIN_ROWS = 16
# Attention looks at a multiple of so many tokens.
GRAIN = 512
# What transformers calls the functions below.
NAME = "regrow_invariant"


def make_invariant(model: PreTrainedModel) -> None:
    """Have a model compute with this attention, and on CPU with these experts."""
    model.set_attn_implementation(NAME)
    if model.device.type == "cpu" and model.get_experts_implementation()[""] is not None:
        model.set_experts_implementation(NAME)


def round_up(number: int, grain: int) -> int:
    """Return the next multiple of the grain."""
    return -(-number // grain) * grain


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attend [B, H, S, W] to [B, H, L, W]; return [B, S, H, W].

    A query may have more rows than there are contexts: the last ones, which are there for the
    products' sake, get zeros.
    """
    num_idle, width = len(query) - len(key), value.shape[-1]
    # One kernel for all: where widths differ torch takes another.
    value = functional.pad(value, (0, key.shape[-1] - width))
    query = query[: len(key)]
    if query.shape[2] == 1:
        attended = _attend_once(query, key, value, attention_mask, scaling=scaling)
    else:
        attended = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling
        )[0]
    return functional.pad(attended[..., :width], (0, 0, 0, 0, 0, 0, 0, num_idle)), None


def _attend_once(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, scaling: float | None
) -> Tensor:
    """Attend with one token of each context, repeated until the products have their rows."""
    contexts, heads, _, width = query.shape
    shared = heads // key.shape[1]
    repeats = -(-max(width // MIN_ROWS, 2) // shared)
    rows = query.reshape(contexts, key.shape[1], shared, width).repeat(1, 1, repeats, 1)
    attended = functional.scaled_dot_product_attention(
        rows, key, value, attn_mask=mask, scale=scaling
    )
    return attended[:, :, :shared].reshape(contexts, 1, heads, -1)


def _run_experts(
    module: nn.Module, hidden_TD: Tensor, experts_TK: Tensor, weights_TK: Tensor
) -> Tensor:
    """Run the experts of each token, and each expert on enough rows of zeros besides."""
    num_experts, each = cast("int", module.num_experts), experts_TK.shape[1]
    idle = -(-MIN_ROWS * num_experts // each)
    turns = torch.arange(idle * each, device=experts_TK.device).view(idle, each)
    out_TD: Tensor = grouped_mm_experts_forward(
        module,
        functional.pad(hidden_TD, (0, 0, 0, idle)),
        torch.cat([experts_TK, turns.to(experts_TK.dtype) % num_experts]),
        functional.pad(weights_TK, (0, 0, 0, idle)),
    )
    return out_TD[: len(hidden_TD)]


AttentionInterface.register(NAME, _attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
ExpertsInterface.register(NAME, _run_experts)
