"""Find out whether a model keeps what packed training takes for granted.

Letters of shapes: T tokens of a packed row, D width of the model, V vocabulary.
"""

from typing import cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.forward import hidden_states, lm_head
from trainer.pack import Packed, pack_rows

FIRST, SECOND = np.array([3, 1, 4, 1, 5]), np.array([9, 2, 6])
# The first row, with another last token.
CHANGED = np.array([3, 1, 4, 1, 7])
# Of the largest number: far above rounding, far below what a token that is seen changes.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


def require_packable(model: PreTrainedModel, *, name: str) -> None:
    """Run two short rows through a model, and check what it makes of them.

    Raises:
        ValueError: its tokens see later ones, or those of the other row; or its logits are more
            than hidden states times the head. The line begins with `name`.
    """
    before = pack_rows([FIRST, SECOND])
    after = pack_rows([CHANGED, SECOND])
    with torch.no_grad():
        seen_TD, changed_TD = hidden_states(model, before), hidden_states(model, after)
        logits_TV, ours_TV = _logits(model, before), seen_TD @ lm_head(model).T
    last, start = len(FIRST) - 1, len(FIRST)
    if not _alike(seen_TD[:last], changed_TD[:last]):
        raise ValueError(f"{name}: its tokens see later ones; expected a causal model")
    if not _alike(seen_TD[start:], changed_TD[start:]):
        raise ValueError(
            f"{name}: in a packed batch one row sees another; expected a model whose attention "
            "takes rows from position ids"
        )
    if not _alike(logits_TV, ours_TV):
        raise ValueError(
            f"{name}: its logits are not hidden states times a matrix; expected no bias, scale or "
            "cap behind the head"
        )


def _logits(model: PreTrainedModel, packed: Packed) -> Tensor:
    answer = model(
        input_ids=packed.input_ids_1T.to(model.device),
        position_ids=packed.position_ids_1T.to(model.device),
        use_cache=False,
    )
    return cast("Tensor", answer.logits[0])


def _alike(left: Tensor, right: Tensor) -> bool:
    deviation = (left - right).abs().max()
    return bool(deviation <= TOLERANCE[left.dtype] * right.abs().max())
