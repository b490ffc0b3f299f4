"""Hand weights from one process to another through a folder, and know that they arrived."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

FILE = "model.safetensors"


def write_weights(folder: Path, weights: Mapping[str, Tensor]) -> str:
    """Write weights into a folder, which appears whole or not at all; return their digest."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    for old in (unfinished, folder):
        shutil.rmtree(old, ignore_errors=True)
    unfinished.mkdir(parents=True)
    on_cpu = {name: it.detach().cpu().contiguous() for name, it in weights.items()}
    save_file(on_cpu, unfinished / FILE)
    unfinished.rename(folder)
    return digest(on_cpu)


def read_weights(folder: Path, *, expected: str) -> dict[str, Tensor]:
    """Read weights that have the expected digest.

    Raises:
        ValueError: there are none, or others.
    """
    try:
        weights = load_file(folder / FILE)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{folder / FILE}: no weights can be read: {error}") from error
    if (found := digest(weights)) != expected:
        raise ValueError(f"{folder / FILE}: has digest {found}, expected {expected}")
    return weights


def digest(weights: Mapping[str, Tensor]) -> str:
    """Return the sha256 of names, types, shapes and bits, in the order of the names."""
    total = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        total.update(f"{name} {weight.dtype} {list(weight.shape)}\n".encode())
        flat = weight.detach().cpu().contiguous().view(-1).view(torch.uint8)
        total.update(flat.numpy().data)
    return total.hexdigest()
