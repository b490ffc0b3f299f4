"""Orthogonalize batches of matrices by Newton-Schulz iterations.

Letters: B matrices of a batch, R and C rows and columns of each, M the shorter of both. On a CPU
the bits of a result depend on the matrix alone, not on what it is batched with. Products of tall
matrices stand on their other side, so that no matrix is transposed in memory.

Beside exact arithmetic (`polar.py`), bf16 is off by 1 to 2 % where a I is added to products, and
by 2 to 4 % where it is folded into the small matrix: that moves singular values within the range
they end in anyway, and the distance to the polar factor is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor

from trainer.muon.coefficients import COEFFICIENTS, Coefficients
from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.flops import form_of, segments

# Of these, products of a batch on a CPU have the bits of products one by one, and are faster; but
# PyTorch gives products to oneDNN only from this number cubed of multiply-adds on, those of the
# whole batch counted: smaller matrices would have other bits in larger batches.
_BATCHED_ON_CPU = ("bfloat16", "float16")
_SMALL = 16


@dataclass(slots=True)
class Scratch:
    """Memory that is used again: to get new memory from the system costs more than a product."""

    buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = field(default_factory=dict)

    def take(self, name: str, shape: Sequence[int], *, like: Tensor) -> Tensor:
        """Return a tensor of any content, whose memory has been given out by this name before."""
        key, numel = (name, like.dtype, like.device), prod(shape)
        if key not in self.buffers or self.buffers[key].numel() < numel:
            self.buffers[key] = like.new_empty(numel)
        return self.buffers[key][:numel].view(*shape)


@torch.no_grad()
def orthogonalize(
    matrices: Tensor, *, config: NewtonSchulzConfig, scratch: Scratch | None = None
) -> Tensor:
    """Bring singular values of matrices [..., R, C] near 1; return them in the products' dtype.

    A matrix of zeros stays one; one with a number that is not finite gets no finite numbers. With
    a scratch the result may be overwritten by the next call that has the same.

    Raises:
        ValueError: there are fewer than two dims.
    """
    match matrices.shape:
        case (*_, _, _):
            num = prod(matrices.shape[:-2])
        case _:
            raise ValueError(
                f"a tensor of shape {list(matrices.shape)}, expected [..., rows, columns]"
            )
    if matrices.numel() == 0:
        return matrices.to(product_dtype(config))
    batch_BRC = matrices.reshape(num, *matrices.shape[-2:])
    chunks = batch_BRC.split(_num_at_once(batch_BRC, config))
    if len(chunks) == 1:
        return _orthogonalize(batch_BRC, config, scratch or Scratch()).view(matrices.shape)
    done_BRC = batch_BRC.new_empty(batch_BRC.shape, dtype=product_dtype(config))
    scratch = scratch or Scratch()
    for chunk, done in zip(chunks, done_BRC.split(len(chunks[0])), strict=True):
        done.copy_(_orthogonalize(chunk, config, scratch))
    return done_BRC.view(matrices.shape)


def product_dtype(config: NewtonSchulzConfig) -> torch.dtype:
    """Return the dtype of the products' operands, and of what is orthogonalized."""
    dtype: torch.dtype = getattr(torch, config.dtype)
    return dtype


def wire_dtype(config: NewtonSchulzConfig) -> torch.dtype:
    """Return the dtype to which matrices are rounded first, so that they may travel in it.

    In fp16 small gradients would vanish before their norm is known.
    """
    return torch.bfloat16 if config.dtype == "bfloat16" else torch.float32


def _num_at_once(batch_BRC: Tensor, config: NewtonSchulzConfig) -> int:
    num, rows, cols = batch_BRC.shape
    if batch_BRC.device.type != "cpu":
        return num
    if config.dtype not in _BATCHED_ON_CPU or min(rows, cols) <= _SMALL:
        return 1
    return max(1, config.chunk_bytes // (product_dtype(config).itemsize * rows * cols))


def _orthogonalize(batch_BRC: Tensor, config: NewtonSchulzConfig, scratch: Scratch) -> Tensor:
    coefficients = COEFFICIENTS[config.coefficients]
    form = form_of(*batch_BRC.shape[-2:], config=config)
    normal_BRC = _normalize(batch_BRC, config, scratch)
    if form == "gram":
        return _gram(normal_BRC, coefficients)
    return _newton_schulz(normal_BRC, coefficients, scratch, is_folded=form == "folded")


def _normalize(batch_BRC: Tensor, config: NewtonSchulzConfig, scratch: Scratch) -> Tensor:
    """Return a copy of Frobenius norm 1."""
    dtype = product_dtype(config)
    exact = batch_BRC.new_empty(0, dtype=torch.promote_types(dtype, torch.float32))
    wide_BRC = scratch.take("wide", batch_BRC.shape, like=exact)
    wide_BRC.copy_(batch_BRC.to(wire_dtype(config)))
    norm_B11 = torch.linalg.vector_norm(wide_BRC, dim=(-2, -1), keepdim=True)
    wide_BRC.div_(norm_B11.clamp_(min=config.eps))
    return scratch.take("x", batch_BRC.shape, like=exact.to(dtype)).copy_(wide_BRC)


def _newton_schulz(
    x_BRC: Tensor, coefficients: Coefficients, scratch: Scratch, *, is_folded: bool
) -> Tensor:
    """Iterate X <- a X + (b A + c A^2) X with A = X X^T, or X^T X on the other side."""
    short = min(x_BRC.shape[-2:])
    next_BRC = scratch.take("next", x_BRC.shape, like=x_BRC)
    gram_BMM = scratch.take("gram", (len(x_BRC), short, short), like=x_BRC)
    poly_BMM = scratch.take("poly", gram_BMM.shape, like=x_BRC)
    for a, b, c in coefficients:
        _gram_matrix(x_BRC, out=gram_BMM)
        torch.baddbmm(gram_BMM, gram_BMM, gram_BMM, beta=b, alpha=c, out=poly_BMM)
        if is_folded:
            poly_BMM.diagonal(dim1=-2, dim2=-1).add_(a)
            torch.bmm(*_beside(poly_BMM, x_BRC), out=next_BRC)
        else:
            torch.baddbmm(x_BRC, *_beside(poly_BMM, x_BRC), beta=a, out=next_BRC)
        x_BRC, next_BRC = next_BRC, x_BRC
    return x_BRC


def _gram(x_BRC: Tensor, coefficients: Coefficients) -> Tensor:
    """Iterate on the Gram matrix alone; X is multiplied once a segment (Gram Newton-Schulz)."""
    first = 0
    for length in segments(len(coefficients)):
        factor_BMM = _gram_segment(_gram_matrix(x_BRC), coefficients[first : first + length])
        x_BRC = torch.bmm(*_beside(factor_BMM, x_BRC))
        first += length
    return x_BRC


def _gram_segment(gram_BMM: Tensor, coefficients: Coefficients) -> Tensor:
    """Return the product of polynomials P = a I + b A + c A^2, where a step makes P A P of A."""
    factor_BMM = None
    for number, (a, b, c) in enumerate(coefficients):
        poly_BMM = torch.baddbmm(gram_BMM, gram_BMM, gram_BMM, beta=b, alpha=c)
        poly_BMM.diagonal(dim1=-2, dim2=-1).add_(a)
        factor_BMM = poly_BMM if factor_BMM is None else torch.bmm(poly_BMM, factor_BMM)
        if number + 1 < len(coefficients):
            gram_BMM = torch.bmm(torch.bmm(poly_BMM, gram_BMM), poly_BMM)
    assert factor_BMM is not None
    return factor_BMM


def _gram_matrix(x_BRC: Tensor, *, out: Tensor | None = None) -> Tensor:
    pair = (x_BRC.mT, x_BRC) if _is_tall(x_BRC) else (x_BRC, x_BRC.mT)
    return torch.bmm(*pair, out=out)


def _beside(small_BMM: Tensor, x_BRC: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in the order in which they are multiplied."""
    return (x_BRC, small_BMM) if _is_tall(x_BRC) else (small_BMM, x_BRC)


def _is_tall(x_BRC: Tensor) -> bool:
    return x_BRC.shape[-2] > x_BRC.shape[-1]
