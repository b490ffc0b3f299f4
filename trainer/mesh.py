"""Lay the ranks of one world out twice: as a mesh for dense weights and as one for experts.

Dense weights are read by every token and want narrow groups, inside one machine; experts are most
of the weights and want wide ones. So each view has a number of replicas of its own. The innermost
axis of either view is made of neighbours.
"""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import PositiveInt
from torch.distributed.device_mesh import DeviceMesh

from trainer.settings import Settings

DENSE = ("dense_replicate", "dense_shard")
EXPERTS = ("expert_replicate", "expert_shard", "expert_parallel")
CONTEXT = ("data", "context")


class MeshConfig(Settings):
    """How many ranks share what; what is left over of the world shards weights."""

    # Copies of the dense weights.
    dense_replicate: PositiveInt = 1
    # Ranks that share the tokens of a row; they lie inside one dense shard group.
    context: PositiveInt = 1
    # Copies of the experts.
    expert_replicate: PositiveInt = 1
    # Ranks that share the experts of a layer, each with whole ones: tokens travel.
    expert_parallel: PositiveInt = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one rank stands in each view.

    Example: `place_of(5, MeshConfig(expert_parallel=8), world=8).expert_parallel` is 5.
    """

    rank: int
    dense_replicate: int
    dense_shard: int
    # Which rows it works at, and which part of them.
    data: int
    context: int
    expert_replicate: int
    expert_shard: int
    expert_parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meshes:
    """The views, as torch has them."""

    config: MeshConfig
    # Axes `DENSE`.
    dense: DeviceMesh
    # Axes `EXPERTS`.
    experts: DeviceMesh
    # Axes `CONTEXT`.
    context: DeviceMesh


def check_meshes(config: MeshConfig, *, world: int) -> None:
    """Refuse views that the world cannot be laid out as.

    Raises:
        ValueError: which sizes do not multiply to the world.
    """
    for name, sizes in _inner(config).items():
        inner = int(np.prod(list(sizes.values())))
        if world % inner:
            shown = " x ".join(f"{key} {value}" for key, value in sizes.items())
            raise ValueError(
                f"{name} view: {shown} = {inner} on {world} ranks; expected a divisor of the world"
            )


def _inner(config: MeshConfig) -> dict[str, dict[str, int]]:
    """Return the sizes of each view that are given, without what is left over."""
    return {
        "dense": {"dense_replicate": config.dense_replicate, "context": config.context},
        "expert": {
            "expert_replicate": config.expert_replicate,
            "expert_parallel": config.expert_parallel,
        },
    }


def make_meshes(config: MeshConfig, *, world: int, device: str = "cpu") -> Meshes:
    """Form the process groups of all views; every rank must call it.

    Raises:
        ValueError: the sizes do not fit the world.
    """
    check_meshes(config, world=world)
    dense, experts, context = (
        DeviceMesh(device, torch.from_numpy(ranks), mesh_dim_names=names)
        for ranks, names in zip(_views(config, world), (DENSE, EXPERTS, CONTEXT), strict=True)
    )
    return Meshes(config=config, dense=dense, experts=experts, context=context)


def _views(config: MeshConfig, world: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ranks = np.arange(world)
    return (
        ranks.reshape(config.dense_replicate, -1),
        ranks.reshape(config.expert_replicate, -1, config.expert_parallel),
        ranks.reshape(-1, config.context),
    )


def place_of(rank: int, config: MeshConfig, *, world: int) -> Place:
    """Return where a rank stands.

    Raises:
        ValueError: the sizes do not fit the world.
    """
    check_meshes(config, world=world)
    found = {
        name: int(index)
        for view, names in zip(_views(config, world), (DENSE, EXPERTS, CONTEXT), strict=True)
        for name, index in zip(names, np.argwhere(view == rank)[0], strict=True)
    }
    return Place(rank=rank, **found)


def layout_rows(config: MeshConfig, *, world: int) -> list[tuple[int, ...]]:
    """Return the table of all places, for people: a row a rank, columns as in `Place`."""
    places = (place_of(rank, config, world=world) for rank in range(world))
    return [tuple(getattr(it, name) for name in Place.__slots__) for it in places]
