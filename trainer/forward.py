"""Run a model over packed rows, up to its head.

Letters of shapes: T tokens of a packed row, D width of the model, V vocabulary.
"""

from contextlib import nullcontext
from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.pack import Packed
from trainer.parallel import Sharded
from trainer.routing import replaying

# A model that this process holds, or that ranks hold together.
Model = PreTrainedModel | Sharded


def hidden_states(model: Model, packed: Packed) -> Tensor:
    """Return the last hidden states [T, D], in which no row has seen another.

    The hidden state of token t - 1 predicts token t. Without a cache and without an attention
    mask, attention takes the borders of rows from where positions begin anew; with either of them
    transformers 5 silently lets rows see one another.
    """
    if isinstance(model, Sharded):
        return model.states(packed)
    experts_TLK = packed.experts_TLK
    with replaying(model, experts_TLK) if experts_TLK is not None else nullcontext():
        answer = model.base_model(
            input_ids=packed.input_ids_1T.to(model.device),
            position_ids=packed.position_ids_1T.to(model.device),
            use_cache=False,
        )
    return cast("Tensor", answer.last_hidden_state[0])


def share_of(model: Model) -> tuple[int, int]:
    """Return which part of a row this rank adds to the loss, and of how many: all, when alone."""
    return model.share if isinstance(model, Sharded) else (0, 1)


def lm_head(model: Model) -> Tensor:
    """Return the weight [V, D] that turns hidden states into logits."""
    if isinstance(model, Sharded):
        return model.head()
    head = model.get_output_embeddings()
    assert isinstance(head, nn.Linear), f"the head is a {type(head).__name__}"
    return head.weight
