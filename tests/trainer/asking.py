"""Requests, and the plain loop that answers them: what every engine must agree with."""

from typing import Any

import numpy as np
import torch

from trainer.draw import draw, uniforms
from trainer.engine import Request
from trainer.records import Ids


def request(
    ids: Any, *, new: int = 24, temperature: float = 1.0, stop: tuple[int, ...] = (), seed: int = 0
) -> Request:
    return Request(
        ids=np.array(ids, np.int64),
        max_new_tokens=new,
        temperature=temperature,
        stop_ids=stop,
        seed=seed,
    )


def ids_of(length: int, *, seed: int) -> Ids:
    return np.random.default_rng(seed).integers(0, 256, length).astype(np.int64)


@torch.no_grad()
def plainly(model: Any, request: Request) -> tuple[list[int], list[float]]:
    """Sample one context alone, the whole of it read anew for each token."""
    ids, logprobs = request.ids.tolist(), []
    for number in uniforms(request.seed, request.max_new_tokens):
        logits_1V = model(input_ids=torch.tensor([ids]), use_cache=False).logits[:, -1]
        token, logprob = draw(logits_1V, number[None], temperatures=[request.temperature])
        ids.append(token.item())
        logprobs.append(logprob.item())
        if ids[-1] in request.stop_ids:
            break
    return ids[len(request.ids) :], logprobs
