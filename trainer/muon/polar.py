"""Compute in fp64, by singular values, what `orthogonalize` approximates."""

import torch
from torch import Tensor

from trainer.muon.coefficients import COEFFICIENTS
from trainer.muon.config import NewtonSchulzConfig


def exact_newton_schulz(matrices: Tensor, *, config: NewtonSchulzConfig) -> Tensor:
    """Return matrices [..., R, C] with the polynomials applied to their singular values."""
    left, values, right = torch.linalg.svd(matrices.double(), full_matrices=False)
    norm = torch.linalg.vector_norm(values, dim=-1, keepdim=True)
    values = values / norm.clamp(min=config.eps)
    for a, b, c in COEFFICIENTS[config.coefficients]:
        values = a * values + b * values**3 + c * values**5
    return left * values.unsqueeze(-2) @ right


def polar_factor(matrices: Tensor) -> Tensor:
    """Return the nearest matrices [..., R, C] whose singular values are all 1.

    The matrices must be of full rank; else there is more than one.
    """
    left, _, right = torch.linalg.svd(matrices.double(), full_matrices=False)
    return left @ right
