"""Draw one token a row from logits.

Letters of shapes: B rows, V vocabulary, N numbers of a request, K blocks of the vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from trainer.seeds import generator

# Sums are taken of blocks first: a running sum of a whole vocabulary is slow.
BLOCK = 256


def uniforms(seed: int, count: int) -> Tensor:
    """Return the numbers [N] in [0, 1), float64, that decide the tokens of one request."""
    return torch.rand(count, generator=generator(seed, "tokens"), dtype=torch.float64)


def draw(
    logits_BV: Tensor, uniform_B: Tensor, *, temperatures: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Return a token [B] of each row, and its log-probability [B] in float32.

    The uniform number picks from the cumulated distribution, so a token depends on its own row
    alone, and rounding errors of the logits change it about as seldom as they are small. A row at
    temperature 0 gets its likeliest token, with its log-probability at temperature 1.
    """
    tau_B = torch.tensor(temperatures, dtype=torch.float32, device=logits_BV.device)
    is_greedy_B = tau_B == 0
    scale_B1 = tau_B.masked_fill(is_greedy_B, 1.0)[:, None]
    logprobs_BV = functional.log_softmax(logits_BV.float() / scale_B1, dim=-1)
    picked_B = _pick(logprobs_BV.exp(), uniform_B.to(logits_BV.device))
    picked_B = torch.where(is_greedy_B, logprobs_BV.argmax(dim=-1), picked_B)
    return picked_B, logprobs_BV.gather(1, picked_B[:, None])[:, 0]


def _pick(probs_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """Return the first token at which the cumulated distribution exceeds the uniform number."""
    rows, vocabulary = probs_BV.shape
    blocks_BKb = functional.pad(probs_BV, (0, -vocabulary % BLOCK)).view(rows, -1, BLOCK)
    until_BK = blocks_BKb.sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    wanted_B1 = (uniform_B * until_BK[:, -1])[:, None]
    block_B1 = torch.searchsorted(until_BK, wanted_B1, right=True)
    block_B1 = block_B1.clamp(max=until_BK.shape[1] - 1)
    before_BK = functional.pad(until_BK, (1, -1))
    rest_B1 = wanted_B1 - before_BK.gather(1, block_B1)
    inside_Bb = blocks_BKb[torch.arange(rows, device=probs_BV.device), block_B1[:, 0]]
    within_Bb = inside_Bb.double().cumsum(dim=-1)
    place_B1 = torch.searchsorted(within_Bb, rest_B1, right=True)
    # Where rounding leaves the number past the last: the last token that can be drawn at all.
    last_B1 = (inside_Bb > 0).int().cumsum(dim=-1).argmax(dim=-1, keepdim=True)
    return (block_B1 * BLOCK + torch.minimum(place_B1, last_B1))[:, 0]
