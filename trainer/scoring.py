"""Find how likely the tokens that the policy sampled are under a model's weights.

Letters of shapes: T tokens of a packed row, L tokens of a Segment, S sampled tokens, D width of
the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.forward import Model, hidden_states, lm_head, share_of
from trainer.head import token_logprobs_and_entropies
from trainer.pack import pack_rows
from trainer.records import Floats, Segment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """What one forward pass over packed Segments gave; gradients reach the model."""

    # [T, D]: that of token t - 1 predicts token t.
    states_TD: Tensor
    # [V, D], the head that made them log-probabilities.
    head_VD: Tensor
    # The tokens themselves, [T].
    ids_T: Tensor
    # [T], 0 for what was not asked for.
    logprobs_T: Tensor
    # [T], True for what the policy sampled, of this rank's share of the row.
    sampled_T: Tensor
    # [T], those that the tokens were sampled with.
    rollout_T: Tensor
    # [S], of the predictions of sampled tokens; detached.
    entropies_S: Tensor
    # Where each Segment stands in the packed row.
    spans: tuple[slice, ...]


def score(
    model: Model,
    segments: Sequence[Segment],
    *,
    temperature: float,
    chunk: int,
    also: Sequence[slice] = (),
) -> Scores:
    """Run the model over Segments; its head only where a token was sampled.

    Of ranks that share a row each scores its own part of it; `also` names tokens of the packed row
    that this one scores besides.

    Raises:
        ValueError: the first token of a Segment is a sampled one, which nothing predicts.
    """
    if any(segment.sampled[0] for segment in segments):
        raise ValueError("a Segment begins with a sampled token, expected a prompt before it")
    packed = pack_rows([it.ids for it in segments], experts=[it.experts for it in segments])
    states_TD = hidden_states(model, packed)
    device = states_TD.device
    ids_T = packed.input_ids_1T[0].to(device)
    sampled_T = torch.from_numpy(np.concatenate([it.sampled for it in segments])).to(device)
    number, ranks = share_of(model)
    each = -(-len(ids_T) // ranks)
    own_T = torch.zeros_like(sampled_T)
    own_T[number * each : (number + 1) * each] = True
    sampled_T &= own_T
    wanted_T = sampled_T.clone()
    for tokens in also:
        wanted_T[tokens] = True
    rollout_T = torch.from_numpy(np.concatenate([it.logprobs for it in segments])).to(device)
    places_S = wanted_T.nonzero()[:, 0]
    head_VD = lm_head(model)
    logprobs_S, entropies_S = token_logprobs_and_entropies(
        states_TD[places_S - 1],
        head_VD,
        ids_T[places_S],
        temperature=temperature,
        chunk=chunk,
    )
    return Scores(
        states_TD=states_TD,
        head_VD=head_VD,
        ids_T=ids_T,
        logprobs_T=logprobs_S.new_zeros(len(ids_T)).index_put((places_S,), logprobs_S),
        sampled_T=sampled_T,
        rollout_T=rollout_T,
        entropies_S=entropies_S[sampled_T[places_S]],
        spans=tuple(map(slice, packed.starts[:-1], packed.starts[1:])),
    )


@torch.no_grad()
def measure_logprobs(
    model: Model, segments: Sequence[Segment], *, temperature: float, chunk: int = 256
) -> list[Floats]:
    """Return for each Segment the log-probabilities [L] of its sampled tokens, 0 elsewhere.

    The Segments are one packed row: give as many as fit.
    """
    scores = score(model, segments, temperature=temperature, chunk=chunk)
    return [scores.logprobs_T[span].cpu().numpy() for span in scores.spans]
