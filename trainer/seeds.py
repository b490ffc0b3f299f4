"""Draw every random choice of the trainer from a seed and the stable id of what it is about."""

import hashlib

import torch


def generator(seed: int, *parts: int | str) -> torch.Generator:
    """Return a CPU generator for one choice: the same seed and parts, the same draws.

    Example: `generator(7, "shuffle", 3)`.
    """
    return torch.Generator().manual_seed(derive(seed, *parts))


def derive(seed: int, *parts: int | str) -> int:
    """Return a seed of 63 bits for one choice.

    The parts are told apart: `("a", "bc")` and `("ab", "c")`, `1` and `"1"` give other seeds.

    Example: `derive(7, "episode", "12-toolz.0", 0, 3)`.
    """
    digest = hashlib.sha256(repr((seed, *parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
