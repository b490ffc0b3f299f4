"""Tell whether a teacher still knows what a hint asks for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trainer.forward import Model, hidden_states, lm_head
from trainer.head import token_logprobs
from trainer.pack import pack_rows
from trainer.records import Ids


class TeacherCollapsedError(RuntimeError):
    """The teacher got so much worse on its canaries that its advice is no advice."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Canary:
    """A hinted context, with a Reply that was good there.

    Example: one that the policy wrote under a hint, and that the detector found nothing in.
    """

    # [S], the history, the hint and the header of the Reply.
    context_ids: Ids
    # [N], at least one.
    good_ids: Ids


@torch.no_grad()
def canary_errors(
    model: Model, canaries: Sequence[Canary], *, temperature: float = 1.0
) -> list[float]:
    """Return how little of its probability the model gives to good tokens after each hint, 0 to 1.

    That is one less the geometric mean over the good tokens of a canary. A teacher that no longer
    follows hints, or writes no sense at all, comes near 1.

    Raises:
        ValueError: there are no canaries.
    """
    if not canaries:
        raise ValueError("no canaries, expected at least one")
    return [_error(model, canary, temperature=temperature) for canary in canaries]


def _error(model: Model, canary: Canary, *, temperature: float) -> float:
    ids = np.concatenate([canary.context_ids, canary.good_ids])
    hidden = hidden_states(model, pack_rows([ids]))[len(canary.context_ids) - 1 : -1]
    good = torch.from_numpy(canary.good_ids).to(hidden.device)
    logprobs = token_logprobs(hidden, lm_head(model), good, temperature=temperature)
    return 1 - float(logprobs.mean().exp())
