"""What the settings of every component have in common: they are frozen, and know their keys."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Settings of one component; a key that it does not have is an error.

    Example: `class PackConfig(Settings): budget: int = 4096`, and `PackConfig(budget=8192)`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
