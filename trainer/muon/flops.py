"""Count the arithmetic of orthogonalizing a matrix, and choose the form that it is done in.

With m the short and n the long side, and 2 operations a multiply-add, a step of Newton-Schulz takes
4 m^2 n + 2 m^3. In the Gram form a segment takes two products with n in it, 4 m^2 n, and each step
others of 2 m^3.
"""

from trainer.muon.coefficients import COEFFICIENTS
from trainer.muon.config import Form, NewtonSchulzConfig

# Steps of the Gram form after which it starts anew from the matrix; without, errors of fp16 grow
# to a tenth (Gram Newton-Schulz of Dao-AILab).
RESTART = 2


def flops(rows: int, cols: int, *, config: NewtonSchulzConfig) -> int:
    """Return the floating-point operations of a matrix.

    Example:
        >>> flops(2, 3, config=NewtonSchulzConfig())
        320
    """
    m, n = sorted((rows, cols))
    num_steps = len(COEFFICIENTS[config.coefficients])
    if form_of(rows, cols, config=config) == "gram":
        return gram_flops(m, n, num_steps=num_steps)
    return num_steps * (4 * m * m * n + 2 * m**3)


def gram_flops(m: int, n: int, *, num_steps: int) -> int:
    """Return the floating-point operations of the Gram form."""
    lengths = segments(num_steps)
    # Each step squares the Gram matrix; all but a segment's first multiply into its polynomial, and
    # all but its last multiply the Gram matrix on both sides.
    small = sum(length + (length - 1) + 2 * (length - 1) for length in lengths)
    return len(lengths) * 4 * m * m * n + small * 2 * m**3


def segments(num_steps: int) -> tuple[int, ...]:
    """Return how many steps the Gram form takes from each start.

    Example:
        >>> segments(5)
        (2, 3)
    """
    return (RESTART, num_steps - RESTART) if num_steps > RESTART else (num_steps,)


def form_of(rows: int, cols: int, *, config: NewtonSchulzConfig) -> Form:
    """Return the form that a matrix is orthogonalized in, never `auto`."""
    if config.form != "auto":
        return config.form
    m, n = sorted((rows, cols))
    num_steps = len(COEFFICIENTS[config.coefficients])
    plain = num_steps * (4 * m * m * n + 2 * m**3)
    is_exact = config.dtype != "bfloat16"
    return "gram" if is_exact and gram_flops(m, n, num_steps=num_steps) < plain else "folded"
