"""Do what Muon does besides orthogonalizing: momentum before, decay and step after.

All of it is elementwise: a fragment of a matrix gets the bits that it gets as part of the whole.
"""

from math import sqrt

import torch
from torch import Tensor

from trainer.muon.config import MuonConfig


@torch.no_grad()
def update_of(
    grad: Tensor, momentum_buffer: Tensor, config: MuonConfig, *, out: Tensor | None = None
) -> Tensor:
    """Add a gradient to the momentum, in place; return what is to be orthogonalized, in fp32.

    Both have the same shape; the buffer is in fp32, and is itself what is returned without
    Nesterov. `out` may hold the result.
    """
    grad, share = grad.float(), config.momentum
    if config.momentum_form == "ema":
        momentum_buffer.lerp_(grad, 1 - share)
        if config.nesterov:
            return torch.lerp(grad, momentum_buffer, share, out=out)
        return momentum_buffer
    torch.add(grad, momentum_buffer, alpha=share, out=momentum_buffer)
    if config.nesterov:
        return torch.add(grad, momentum_buffer, alpha=share, out=out)
    return momentum_buffer


def scale_of(unit_shape: tuple[int, int], config: MuonConfig) -> float:
    """Return the factor of the update of a unit: of the matrix that was orthogonalized.

    Example:
        >>> scale_of((64, 16), MuonConfig(scale="original"))
        2.0
    """
    rows, cols = unit_shape
    match config.scale:
        case "match_rms_adamw":
            return 0.2 * sqrt(max(rows, cols))
        case "original":
            return sqrt(max(1, rows / cols))
        case "spectral_unclamped":
            return sqrt(rows / cols)


@torch.no_grad()
def apply_unit(
    param_view: Tensor,
    orthogonalized: Tensor,
    unit_shape: tuple[int, int],
    lr: float,
    config: MuonConfig,
) -> None:
    """Decay weights and step, in place.

    Both tensors have the same shape: a unit, a batch of units of one shape, or fragments of them.
    Weights in 16 bits are rounded once, after the step.
    """
    wide = param_view.to(torch.promote_types(param_view.dtype, torch.float32))
    if config.weight_decay:
        wide.mul_(1 - lr * config.weight_decay)
    wide.add_(orthogonalized, alpha=-lr * scale_of(unit_shape, config))
    if wide is not param_view:
        param_view.copy_(wide)


@torch.no_grad()
def settle(
    param_view: Tensor,
    momentum_view: Tensor,
    orthogonalized: Tensor,
    *,
    unit_shape: tuple[int, int],
    lr: float,
    config: MuonConfig,
) -> None:
    """Step as `apply_unit` does where numbers are finite; else keep weights, begin momentum anew.

    All are the same fragment of one unit; other fragments of it are treated alike, whoever holds
    them.
    """
    if are_finite(orthogonalized):
        apply_unit(param_view, orthogonalized, unit_shape, lr, config)
    else:
        momentum_view.zero_()


def are_finite(orthogonalized: Tensor) -> bool:
    """Tell whether matrices [..., R, C], or fragments of them, are finite.

    Of an orthogonalized matrix either all numbers are or none is: the first one is looked at.
    """
    return bool(orthogonalized[..., 0, 0].isfinite().all())
