"""Hold the polynomials of Newton-Schulz iterations.

A step maps a singular value s to a s + b s^3 + c s^5; a list has (a, b, c) of each step.
"""

from collections.abc import Mapping
from typing import Literal

Coefficients = tuple[tuple[float, float, float], ...]
CoefficientsName = Literal["jordan", "polar_express", "deepseek_v4"]

_JORDAN = (3.4445, -4.7750, 2.0315)

COEFFICIENTS: Mapping[CoefficientsName, Coefficients] = {
    # Keller Jordan, kellerjordan.github.io/posts/muon: what is above 2e-3 ends in 0.68 .. 1.21.
    "jordan": (_JORDAN,) * 5,
    # Amsel et al., arXiv 2505.16932, for five steps from 1e-3 on, with a margin of 2 % for bf16,
    # as modded-nanogpt and dion have them.
    "polar_express": (
        (8.156554524902461, -22.48329292557795, 15.878769915207462),
        (4.042929935166739, -2.808917465908714, 0.5000178451051316),
        (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
        (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
        (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
    ),
    # DeepSeek-V4: eight steps that get near 1, and two that settle there.
    "deepseek_v4": (_JORDAN,) * 8 + ((2.0, -1.5, 0.5),) * 2,
}
