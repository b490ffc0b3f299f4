"""Tell whether a model fits into memory, from the headers of its files, before it is loaded."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch

# A header that claims to be longer is none.
MAX_HEADER_BYTES = 100 << 20


def require_room(
    folder: Path, *, prefix: str, dtype: torch.dtype, device: torch.device, copies: int
) -> None:
    """Check that `copies` numbers for each weight fit into what is free on the device.

    Only weights whose names begin with `prefix` count.

    Raises:
        ValueError: they do not fit, or a file is missing or no safetensors.
    """
    num_weights = sum(
        math.prod(shape)
        for path in weight_files(folder)
        for name, shape in _shapes(path).items()
        if name.startswith(prefix)
    )
    needed, free = num_weights * dtype.itemsize * copies, free_bytes(device)
    if needed > free:
        raise ValueError(
            f"{folder}: does not fit: {num_weights:,} weights of {dtype.itemsize} bytes, {copies} "
            f"times (with gradients and the like), are {needed / 2**30:.1f} GiB; on {device} "
            f"{free / 2**30:.1f} GiB are free"
        )


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors of a model folder.

    Raises:
        ValueError: there are none, or one that the index names is not there.
    """
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        paths = [folder / "model.safetensors"]
    else:
        paths = [folder / name for name in sorted(set(_weight_map(index).values()))]
    if missing := [path.name for path in paths if not path.is_file()]:
        raise ValueError(f"{folder}: {missing[0]} is not there; expected a model's safetensors")
    return paths


def free_bytes(device: torch.device) -> int:
    """Return how much memory is free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    lines = Path("/proc/meminfo").read_text().splitlines()
    [available] = [line for line in lines if line.startswith("MemAvailable:")]
    return int(available.split()[1]) * 1024


def _weight_map(index: Path) -> dict[str, str]:
    try:
        return dict(json.loads(index.read_text())["weight_map"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{index}: {error!r}; expected a weight_map in JSON") from error


def _shapes(path: Path) -> Mapping[str, list[int]]:
    """Return the shape of each tensor in a safetensors file, reading no tensor."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if length <= MAX_HEADER_BYTES else b""
    try:
        tensors = dict(json.loads(header).items())
        return {name: tensors[name]["shape"] for name in tensors if name != "__metadata__"}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: its header cannot be read; expected safetensors") from error
