"""Models that are nothing but layouts and units, drawn at random or made by hand."""

from math import prod

import numpy as np
from hypothesis import strategies as st

from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.costs import Cluster
from trainer.muon.cuts import Columns, Cut, Experts, Rows, Whole
from trainer.muon.jobs import Plan, PlanOptions
from trainer.muon.layout import Layout, Placement, Replicate, Shard, lay_out
from trainer.muon.plan import make_plan
from trainer.muon.units import Unit, units_of

Model = dict[str, tuple[Layout, tuple[Unit, ...]]]

PLACEMENTS: tuple[Placement, ...] = (
    Replicate(),
    Shard(dim=0),
    Shard(dim=1),
    Shard(dim=0, is_strided=True),
)


@st.composite
def models(draw: st.DrawFn, *, num_ranks: int) -> Model:
    model: Model = {}
    for number in range(draw(st.integers(1, 3))):
        name = f"p{number}"
        shape, cut = draw(cut_shapes())
        ranks = draw(st.permutations(range(num_ranks)))
        axes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        while prod(axes) > num_ranks:
            axes = axes[:-1] or [num_ranks]
        mesh = np.array(ranks[: prod(axes)]).reshape(axes)
        placements = tuple(draw(st.sampled_from(PLACEMENTS)) for _ in axes)
        layout = lay_out(name, shape, mesh=mesh, placements=placements)
        model[name] = (layout, units_of(name, shape, cut))
    return model


@st.composite
def cut_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], Cut]:
    size, count, other = (draw(st.integers(1, 5)) for _ in range(3))
    experts = draw(st.integers(1, 7))
    choices: list[tuple[tuple[int, ...], Cut]] = [
        ((size * count, other), Rows(size=size)),
        ((other, size * count), Columns(size=size)),
        ((size, other), Whole()),
        ((experts, size * count, other), Experts(cut=Rows(size=size))),
        ((experts, size, other), Experts(cut=Whole())),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def plan_options(draw: st.DrawFn) -> PlanOptions:
    return PlanOptions(
        orthogonalize=NewtonSchulzConfig(dtype=draw(st.sampled_from(["bfloat16", "float32"]))),
        redo=draw(st.sampled_from(["cheapest", "always", "never"])),
        job_bytes=draw(st.sampled_from([1, 40, 400])),
        relay_bytes=draw(st.sampled_from([1, 400])),
        relay_s=draw(st.sampled_from([1e-12, 1.0])),
        depth=draw(st.integers(1, 3)),
    )


@st.composite
def planned(draw: st.DrawFn) -> tuple[Model, Plan]:
    num_ranks = draw(st.integers(1, 9))
    model = draw(models(num_ranks=num_ranks))
    # So slow that where a matrix is orthogonalized matters, as it does for large ones.
    cluster = Cluster(
        num_ranks=num_ranks,
        ranks_per_node=draw(st.integers(1, 4)),
        flops_s=draw(st.sampled_from([1e6, 1e12])),
        network_bytes_s=1e6,
    )
    return model, planned_on(cluster, model, draw(plan_options()))


def planned_on(cluster: Cluster, model: Model, options: PlanOptions | None = None) -> Plan:
    layouts = {name: layout for name, (layout, _) in model.items()}
    units = [unit for _, units in model.values() for unit in units]
    return make_plan(layouts, units, cluster=cluster, options=options)


def experts(*, num_experts: int, num_ranks: int, num_layers: int = 1, rows: int = 512) -> Model:
    shape = (num_experts, rows, 1024)
    names = [f"layer.{number}" for number in range(num_layers)]
    mesh = np.arange(num_ranks)
    return {
        name: (
            lay_out(name, shape, mesh=mesh, placements=(Shard(dim=0),)),
            units_of(name, shape, Experts(cut=Whole())),
        )
        for name in names
    }


def dense(name: str, shape: tuple[int, ...], *, mesh: tuple[int, int]) -> Model:
    ranks = np.arange(mesh[0] * mesh[1]).reshape(mesh)
    layout = lay_out(name, shape, mesh=ranks, placements=(Replicate(), Shard(dim=0)))
    return {name: (layout, units_of(name, shape, Whole()))}


def split_experts(*, num_experts: int, shared_by: int, num_layers: int) -> Model:
    """Return experts of which each is cut by rows over ranks that follow each other."""
    shape = (num_experts, 512, 1024)
    mesh = np.arange(num_experts * shared_by).reshape(num_experts, shared_by)
    placements = (Shard(dim=0), Shard(dim=1))
    return {
        name: (
            lay_out(name, shape, mesh=mesh, placements=placements),
            units_of(name, shape, Experts(cut=Whole())),
        )
        for name in (f"layer.{number}" for number in range(num_layers))
    }
