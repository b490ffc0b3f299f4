"""Run a model over packed rows, up to its head.

Letters of shapes: T tokens of a packed row, D width of the model, V vocabulary.
"""

from contextlib import nullcontext
from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.pack import Packed
from trainer.routing import replaying


def hidden_states(model: PreTrainedModel, packed: Packed) -> Tensor:
    """Return the last hidden states [T, D], in which no row has seen another.

    The hidden state of token t - 1 predicts token t. Without a cache and without an attention
    mask, attention takes the borders of rows from where positions begin anew; with either of them
    transformers 5 silently lets rows see one another.
    """
    experts_TLK = packed.experts_TLK
    with replaying(model, experts_TLK) if experts_TLK is not None else nullcontext():
        answer = model.base_model(
            input_ids=packed.input_ids_1T.to(model.device),
            position_ids=packed.position_ids_1T.to(model.device),
            use_cache=False,
        )
    return cast("Tensor", answer.last_hidden_state[0])


def lm_head(model: PreTrainedModel) -> Tensor:
    """Return the weight [V, D] that turns hidden states into logits."""
    head = model.get_output_embeddings()
    assert isinstance(head, nn.Linear), f"the head is a {type(head).__name__}"
    return head.weight
