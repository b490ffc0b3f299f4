"""Plan and simulate one step of one model on one cluster."""

from dataclasses import dataclass
from typing import Literal

from trainer.bench.muon_scale.arrange import Meshes, adamw_ns, choose_meshes, lay_out_all
from trainer.bench.muon_scale.config import ScaleConfig
from trainer.bench.muon_scale.models import Shapes
from trainer.muon.bound import bound
from trainer.muon.costs import APPLY_BYTES, PACK_BYTES, Cluster, Link
from trainer.muon.flops import flops
from trainer.muon.plan import make_plan, num_orthogonalized
from trainer.muon.simulate import simulate

# `planned`: replicas redo what is cheaper so. `redone`: each replica does all of its own dense
# matrices. `gathered`: every rank gathers everything, and orthogonalizes all of it.
Policy = Literal["planned", "redone", "gathered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a step takes, in seconds."""

    policy: Policy
    num_gpus: int
    meshes: Meshes
    step_s: float
    # What no plan for these layouts beats.
    bound_s: float
    # The most that a rank is busy with products, and with its own memory.
    product_s: float
    memory_s: float
    # The most that a rank's end of a link is busy.
    link_s: dict[Link, float]
    # Matrices that are orthogonalized, by those that there are.
    repeated: float


def point(
    model: Shapes, config: ScaleConfig, *, policy: Policy, num_gpus: int, width: int
) -> Point:
    """Return what a step takes under a policy."""
    cluster = config.cluster.model_copy(update={"num_ranks": num_gpus})
    meshes = choose_meshes(
        num_gpus,
        dense_width=width,
        num_experts=model.num_experts,
        node=cluster.ranks_per_node,
    )
    if policy == "gathered":
        return _gathered(model, config, cluster=cluster, meshes=meshes)
    redo = config.plan.redo if policy == "planned" else "always"
    plan = make_plan(
        lay_out_all(model, meshes),
        model.membership.units,
        cluster=cluster,
        options=config.plan.model_copy(update={"redo": redo}),
    )
    filler_N = adamw_ns(model, meshes, cluster)
    timing = simulate(plan, filler_ns=filler_N)
    return Point(
        policy=policy,
        num_gpus=num_gpus,
        meshes=meshes,
        step_s=timing.makespan_s,
        bound_s=bound(plan, filler_ns=filler_N).bound_s,
        product_s=int(timing.product_ns.max()) / 1e9,
        memory_s=int(timing.memory_ns.max()) / 1e9,
        link_s={link: int(busy_N.max()) / 1e9 for link, busy_N in timing.link_ns.items()},
        repeated=num_orthogonalized(plan) / len(plan.units),
    )


def _gathered(model: Shapes, config: ScaleConfig, *, cluster: Cluster, meshes: Meshes) -> Point:
    """Add up what every rank does: nothing overlaps, and nothing is shared."""
    num_bytes = model.num_muon * config.plan.wire_bytes * (1 - 1 / cluster.num_ranks)
    product_s = num_flops(model, config) / cluster.flops_s
    touched = model.num_muon * (PACK_BYTES + APPLY_BYTES) / cluster.num_ranks
    memory_s = touched / cluster.hbm_bytes_s
    network_s = num_bytes / cluster.network_bytes_s
    step_s = product_s + memory_s + network_s
    return Point(
        policy="gathered",
        num_gpus=cluster.num_ranks,
        meshes=meshes,
        step_s=step_s,
        bound_s=step_s,
        product_s=product_s,
        memory_s=memory_s,
        link_s={"network": network_s, "nvlink": 0.0},
        repeated=cluster.num_ranks,
    )


def num_flops(model: Shapes, config: ScaleConfig) -> int:
    """Return the operations of all products, each matrix once."""
    return sum(flops(*it.shape, config=config.plan.orthogonalize) for it in model.membership.units)
