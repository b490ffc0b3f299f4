"""Shrink queries and keys of heads whose attention logits have grown too large (QK-clip).

Kimi K2, arXiv 2507.20534: after a step, logits of a head whose largest S exceeds tau are scaled by
gamma = tau / S. Plainly queries and keys get sqrt(gamma) each. With MLA so do the parts without
rotation; of the rotated ones the key is shared by all heads, so that the query gets gamma. Models
that normalize queries and keys need none of it.

Letters: H heads, K heads of keys.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Mla:
    """Rows of a head in the projections of multi-head latent attention."""

    # Of a head of queries: without rotation, then with.
    nope: int
    rope: int
    # Of a head's values, which stand below its keys.
    values: int


@torch.no_grad()
def gammas(max_logits_H: Tensor, *, tau: float) -> Tensor:
    """Return the factor of each head's logits, 1 where they are small enough.

    The largest logits must be those over all ranks: replicas that clip apart drift apart.

    Example:
        >>> gammas(torch.tensor([50.0, 200.0, -3.0, float("nan")]), tau=100.0)
        tensor([1.0000, 0.5000, 1.0000, 1.0000])
    """
    # What is no number, or not positive, is no reason to clip.
    is_large_H = max_logits_H > tau
    safe_H = torch.where(is_large_H & max_logits_H.isfinite(), max_logits_H, tau)
    return tau / safe_H


@torch.no_grad()
def clip_plain(queries: Tensor, keys: Tensor, gammas_H: Tensor) -> None:
    """Scale the weights of queries [H d, C] and keys [K d, C] in place.

    A head of keys that several heads of queries share gets the smallest of their factors, and each
    of them what is left of its own.

    Raises:
        ValueError: the heads do not divide the rows.
    """
    num_heads = len(gammas_H)
    by_head_HDC = _heads(queries, num_heads, "queries")
    head_rows = by_head_HDC.shape[1]
    by_key_KDC = _heads(keys, len(keys) // head_rows, "keys")
    if num_heads % len(by_key_KDC):
        raise ValueError(f"{num_heads} heads of queries, expected a multiple of {len(by_key_KDC)}")
    least_K1 = gammas_H.view(len(by_key_KDC), -1).amin(dim=1, keepdim=True)
    of_queries_H = (gammas_H.view(len(by_key_KDC), -1) / least_K1.sqrt()).flatten()
    by_key_KDC.mul_(_factors(least_K1.sqrt().flatten(), by_key_KDC))
    by_head_HDC.mul_(_factors(of_queries_H, by_head_HDC))


@torch.no_grad()
def clip_mla(queries: Tensor, keys_and_values: Tensor, gammas_H: Tensor, *, mla: Mla) -> None:
    """Scale the weights of queries [H (nope + rope), C] and keys [H (nope + values), C] in place.

    Values and the shared rotated key stay as they are.

    Raises:
        ValueError: the heads do not divide the rows.
    """
    num_heads = len(gammas_H)
    queries_HDC = _heads(queries, num_heads, "queries", size=mla.nope + mla.rope)
    keys_HDC = _heads(keys_and_values, num_heads, "keys and values", size=mla.nope + mla.values)
    root_H11 = _factors(gammas_H.sqrt(), queries_HDC)
    queries_HDC[:, : mla.nope].mul_(root_H11)
    queries_HDC[:, mla.nope :].mul_(_factors(gammas_H, queries_HDC))
    keys_HDC[:, : mla.nope].mul_(root_H11)


def _heads(weights: Tensor, num: int, what: str, *, size: int | None = None) -> Tensor:
    rows = weights.shape[0]
    if not num or rows % num or size not in {None, rows // num}:
        expected = f"a multiple of {num}" if size is None else f"{num} x {size}"
        raise ValueError(f"{what} of {rows} rows, expected {expected}")
    return weights.view(num, rows // num, -1)


def _factors(factors_H: Tensor, weights_HDC: Tensor) -> Tensor:
    return factors_H.to(weights_HDC.dtype).view(-1, 1, 1)
