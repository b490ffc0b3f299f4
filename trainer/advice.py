"""Read the Targets of a step with a teacher that ranks hold together, before anything is learnt.

Its ranks must run it equally often, whatever Targets each has: rows of whole contexts are packed,
and a rank with fewer runs a row that nobody looks at.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from trainer.forward import Model, hidden_states, lm_head
from trainer.objective import hinted
from trainer.pack import Packed, pack, pack_rows
from trainer.records import Ids, Sample, Segment, Target

# What a rank runs that has nothing to do.
IDLE_IDS = np.zeros(2, dtype=np.int64)


class Read:
    """What a teacher said of Targets, in the form that `objective` asks for it."""

    def __init__(self, head_VD: Tensor, states: dict[int, Tensor]) -> None:
        self.head = head_VD
        self._states = states

    def read(self, segment: Segment, targets: Sequence[Target]) -> list[Tensor]:
        """Return for each Target the states [N, D] that predict its tokens after its hint."""
        del segment
        return [self._states[id(target)] for target in targets]


@torch.no_grad()
def read_all(
    teacher: Model,
    samples: Sequence[Sample],
    *,
    row_tokens: int,
    num_passes: Callable[[int], int],
) -> Read:
    """Read every Target of some Samples; all ranks that hold the teacher must call it."""
    aimed = [(it, target) for it in samples for target in hinted(it)]
    contexts = [_context(it.segment, target) for it, target in aimed]
    bins = pack([len(ids) for ids in contexts], budget=row_tokens)
    states: dict[int, Tensor] = {}
    for number in range(num_passes(len(bins))):
        members = bins[number] if number < len(bins) else []
        packed = pack_rows([contexts[index] for index in members] or [IDLE_IDS])
        states_TD = hidden_states(teacher, packed)
        for place, index in enumerate(members):
            states[id(aimed[index][1])] = _cut(states_TD, packed, place, *aimed[index])
    return Read(lm_head(teacher).detach(), states)


def _context(segment: Segment, target: Target) -> Ids:
    """Return the history as it was, one hint, and the Reply."""
    header = segment.replies[target.reply].header
    return np.concatenate([
        segment.ids[:header],
        target.hint_ids,
        segment.ids[header : target.end],
    ])


def _cut(states_TD: Tensor, packed: Packed, place: int, sample: Sample, target: Target) -> Tensor:
    """Return the states [N, D] that predict a Target's tokens in a context of a packed row."""
    assert sample.segment.replies[target.reply].header < target.start, target
    shift = packed.starts[place] + len(target.hint_ids) - 1
    return states_TD[target.start + shift : target.end + shift].clone()
