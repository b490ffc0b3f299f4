"""What is to be chosen about Muon.

Each of these choices differs between published recipes and changes what is trained.
"""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from trainer.muon.coefficients import CoefficientsName
from trainer.settings import Settings

ProductDtype = Literal["bfloat16", "float16", "float32", "float64"]
# `plain` is the textbook's. `folded` adds a I to the small matrix instead of a X to the product:
# fewer passes over memory, one more rounding. `gram` iterates on X X^T alone: less arithmetic for
# long matrices, and inexact in bf16 for small singular values. `auto` is `gram` where it has less
# arithmetic and the products are more exact than bf16, else `folded`.
Form = Literal["plain", "folded", "gram", "auto"]
# The factor of an update for R rows and C columns: 0.2 sqrt(max(R, C)), which moves weights as far
# as AdamW does (Moonlight, arXiv 2502.16982); sqrt(max(1, R / C)) (Keller Jordan); sqrt(R / C).
Scale = Literal["match_rms_adamw", "original", "spectral_unclamped"]
# The buffer is momentum x buffer + gradient, or momentum x buffer + (1 - momentum) x gradient: the
# same direction, but a buffer of another size in checkpoints.
MomentumForm = Literal["sum", "ema"]


class NewtonSchulzConfig(Settings):
    """How matrices are orthogonalized."""

    coefficients: CoefficientsName = "jordan"
    # Of the products' operands; sums within a product are in fp32 or better.
    dtype: ProductDtype = "bfloat16"
    form: Form = "auto"
    # Of matrices that are worked on at once: what the cache of a CPU holds. For a GPU, much more.
    chunk_bytes: PositiveInt = 2**22
    # A matrix with a smaller Frobenius norm is divided by this instead.
    eps: PositiveFloat = 1e-12


class GroupChoices(Settings):
    """What the matrices of attention and routers are."""

    # Heads of a projection to queries, keys or values that are one matrix; 0 for all of them.
    # None: one where MLA projects up from its latents, all elsewhere.
    heads: int | None = Field(default=None, ge=0)
    # Heads of an output projection that are one matrix, of its columns; 0 for all of them.
    output_heads: int = Field(default=0, ge=0)
    # Whether keys and values of a head of MLA are two matrices.
    split_kv: bool = True
    router: Literal["muon", "adamw"] = "adamw"


class MuonConfig(Settings):
    """Muon, for matrices; other parameters are AdamW's."""

    lr: float = Field(default=1e-3, ge=0)
    momentum: float = Field(default=0.95, ge=0, lt=1)
    momentum_form: MomentumForm = "sum"
    # Whether the gradient is added to the momentum once more.
    nesterov: bool = True
    scale: Scale = "match_rms_adamw"
    # A step takes this times `lr` of each weight away, whatever the scale.
    weight_decay: float = Field(default=0.0, ge=0)
    orthogonalize: NewtonSchulzConfig = NewtonSchulzConfig()
    groups: GroupChoices = GroupChoices()
