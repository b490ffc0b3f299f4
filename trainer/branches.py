"""Read each Target's Reply once more with its hint in front, sharing what stands before.

Letters of shapes: N tokens of a Target, D width of the model.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from trainer.records import Ids, Segment, Target


@torch.no_grad()
def branch_states(
    model: PreTrainedModel, segment: Segment, targets: Sequence[Target]
) -> list[Tensor]:
    """Return for each Target the hidden states [N, D] that predict its tokens after its hint.

    A branch is `ids[:header] + hint_ids + ids[header:end]`: the history as it was, with one hint
    in it and no other. The Segment is run once, up to the last header, and its cache is cut back
    from one header to the next; of a branch only the hint and the Reply are run. A model whose
    cache cannot be cut runs each branch by itself.
    """
    headers = [segment.replies[target.reply].header for target in targets]
    order = sorted(range(len(targets)), key=lambda number: -headers[number])
    cache = DynamicCache(config=model.config)
    if not targets:
        return []
    # A layer that sees a window forgets what is behind it, and cannot be cut back twice.
    if not cache.is_croppable or any(cache.is_sliding):
        return separate_states(model, segment, targets)
    _run(model, segment.ids[: headers[order[0]]], cache=cache)
    states: dict[int, Tensor] = {}
    for number in order:
        cache.crop(headers[number] - cache.get_seq_length())
        states[number] = _branch(model, segment, targets[number], cache=cache)
    return [states[number] for number in range(len(targets))]


@torch.no_grad()
def separate_states(
    model: PreTrainedModel, segment: Segment, targets: Sequence[Target]
) -> list[Tensor]:
    """Return what `branch_states` does, from one whole forward pass a Target: its plain twin."""
    states = []
    for target in targets:
        cache = DynamicCache(config=model.config)
        _run(model, segment.ids[: segment.replies[target.reply].header], cache=cache)
        states.append(_branch(model, segment, target, cache=cache))
    return states


def _branch(
    model: PreTrainedModel, segment: Segment, target: Target, *, cache: DynamicCache
) -> Tensor:
    header = segment.replies[target.reply].header
    ids = np.concatenate([target.hint_ids, segment.ids[header : target.end]])
    # The row that predicts a token is that of the token before, which is the student's too.
    rows = np.arange(target.start - 1, target.end - 1) - header + len(target.hint_ids)
    assert header < target.start <= target.end <= len(segment.ids), (header, target)
    assert np.array_equal(ids[rows], segment.ids[target.start - 1 : target.end - 1]), target
    return _run(model, ids[:-1], cache=cache)[torch.from_numpy(rows).to(model.device)]


def _run(model: PreTrainedModel, ids: Ids, *, cache: DynamicCache) -> Tensor:
    """Return the last hidden states of tokens that go on from what is in the cache."""
    start = cache.get_seq_length()
    if len(ids) == 0:
        return torch.empty(0, device=model.device)
    answer = model.base_model(
        input_ids=torch.from_numpy(ids)[None].to(model.device),
        position_ids=torch.arange(start, start + len(ids), device=model.device)[None],
        cache=cache,
        use_cache=True,
    )
    return cast("Tensor", answer.last_hidden_state[0])
