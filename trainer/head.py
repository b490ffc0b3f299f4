"""Turn hidden states into log-probabilities, without ever holding all logits.

Letters of shapes: T tokens, C tokens of a chunk, N rows, D width of the model, V vocabulary.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor
from torch.autograd.function import Function, FunctionCtx, once_differentiable


def token_logprobs(
    hidden_TD: Tensor, weight_VD: Tensor, ids_T: Tensor, *, temperature: float, chunk: int = 256
) -> Tensor:
    """Return the log-probability [T], fp32, of each token; gradients reach hidden and weight.

    `hidden_TD[t]` is the hidden state that predicts `ids_T[t]`: that of the token before.

    Logits are made for `chunk` tokens at a time, and again in the backward pass. What is held at
    once, besides the inputs and their gradients, is about `8 * chunk * V` bytes.
    """
    return token_logprobs_and_entropies(
        hidden_TD, weight_VD, ids_T, temperature=temperature, chunk=chunk
    )[0]


def token_logprobs_and_entropies(
    hidden_TD: Tensor, weight_VD: Tensor, ids_T: Tensor, *, temperature: float, chunk: int = 256
) -> tuple[Tensor, Tensor]:
    """Return `token_logprobs`, and the entropy [T] in nats of each prediction, detached."""
    scores = _Scores.apply(hidden_TD, weight_VD, ids_T, temperature, chunk)
    return cast("tuple[Tensor, Tensor]", scores)


def log_softmax_rows(hidden_ND: Tensor, weight_VD: Tensor, *, temperature: float) -> Tensor:
    """Return all log-probabilities [N, V], fp32, of a few predictions."""
    return _logits(hidden_ND, weight_VD, temperature).log_softmax(-1)


class _Context(FunctionCtx):
    """What the backward pass of `_Scores` is given."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    temperature: float
    chunk: int


class _Scores(Function):
    """Log-probabilities and entropies, a chunk at a time in both directions."""

    @staticmethod
    def forward(
        ctx: _Context,
        hidden_TD: Tensor,
        weight_VD: Tensor,
        ids_T: Tensor,
        temperature: float,
        chunk: int,
    ) -> tuple[Tensor, Tensor]:
        scores_4T = torch.empty(4, len(ids_T), dtype=torch.float32, device=hidden_TD.device)
        for part in _chunks(len(ids_T), chunk):
            logits_CV = _logits(hidden_TD[part], weight_VD, temperature)
            scores_4T[:, part] = _score(logits_CV, ids_T[part])
            # Before the next are made.
            del logits_CV
        logprobs_T, entropies_T, tops_T, sums_T = (row.clone() for row in scores_4T)
        ctx.save_for_backward(hidden_TD, weight_VD, ids_T, tops_T, sums_T)
        ctx.temperature, ctx.chunk = temperature, chunk
        ctx.mark_non_differentiable(entropies_T)
        return logprobs_T, entropies_T

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, grads_T: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden_TD, weight_VD, ids_T, tops_T, sums_T = ctx.saved_tensors
        for_hidden, for_weight = ctx.needs_input_grad[:2]
        hidden_grad_TD = torch.empty_like(hidden_TD) if for_hidden else None
        weight_grad_VD = torch.zeros_like(weight_VD, dtype=torch.float32) if for_weight else None
        grads_T1 = (grads_T / ctx.temperature)[:, None]
        for part in _chunks(len(ids_T), ctx.chunk):
            grad_CV = _logits(hidden_TD[part], weight_VD, ctx.temperature)
            grad_CV.sub_(tops_T[part, None]).exp_().mul_(-grads_T1[part] / sums_T[part, None])
            grad_CV.scatter_add_(1, ids_T[part, None], grads_T1[part])
            grad_CV = grad_CV.to(weight_VD.dtype)
            if hidden_grad_TD is not None:
                hidden_grad_TD[part] = grad_CV @ weight_VD
            if weight_grad_VD is not None:
                _add_product(weight_grad_VD, grad_CV.T, hidden_TD[part])
            del grad_CV
        if weight_grad_VD is not None:
            weight_grad_VD = weight_grad_VD.to(weight_VD.dtype)
        return hidden_grad_TD, weight_grad_VD, None, None, None


def _chunks(count: int, chunk: int) -> Iterator[slice]:
    return (slice(start, start + chunk) for start in range(0, count, chunk))


def _logits(hidden_CD: Tensor, weight_VD: Tensor, temperature: float) -> Tensor:
    return (hidden_CD @ weight_VD.T).float().div_(temperature)


def _score(logits_CV: Tensor, ids_C: Tensor) -> Tensor:
    """Return log-probability, entropy, top logit and sum of exponentials [4, C]; spoils logits."""
    tops_C = logits_CV.amax(-1)
    logits_CV -= tops_C[:, None]
    exps_CV = logits_CV.exp()
    sums_C = exps_CV.sum(-1)
    logprobs_C = logits_CV.gather(1, ids_C[:, None]).squeeze(1) - sums_C.log()
    means_C = logits_CV.mul_(exps_CV).sum(-1) / sums_C
    return torch.stack([logprobs_C, sums_C.log() - means_C, tops_C, sums_C])


def _add_product(total_VD: Tensor, left_VC: Tensor, right_CD: Tensor) -> None:
    """Add `left @ right` to a total in fp32: rounding is not to grow with the number of chunks."""
    if right_CD.dtype == total_VD.dtype:
        total_VD.addmm_(left_VC, right_CD)
    else:
        total_VD += left_VC @ right_CD
