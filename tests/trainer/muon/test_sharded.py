"""Muon on forked gloo ranks is the reference on one process, to the bit."""

import logging
import time
from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from tests.trainer.forked import on_ranks
from trainer.mesh import MeshConfig, make_meshes
from trainer.muon.config import GroupChoices, MuonConfig, NewtonSchulzConfig
from trainer.muon.costs import LINKS, Cluster
from trainer.muon.families import rules_for
from trainer.muon.jobs import PlanOptions
from trainer.muon.layout import box_of
from trainer.muon.placed import layout_of, local_part
from trainer.muon.plan import num_orthogonalized
from trainer.muon.reference import ReferenceMuon
from trainer.muon.sharded import ShardedMuon
from trainer.muon.traffic import bytes_moved
from trainer.muon.units import Membership, sort_parameters
from trainer.parallel import parallelize
from trainer.ranks import Ranks
from trainer.tiny import TinyKind, random_model, tiny_config

CONFIG = MuonConfig(lr=0.01, weight_decay=0.1, groups=GroupChoices(router="muon"))
NUM_STEPS = 3


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model_of(kind: TinyKind) -> Any:
    return random_model(tiny_config(kind), seed=0)


def membership_of(model: Any, config: MuonConfig) -> Membership:
    shapes = {name: tuple(it.shape) for name, it in model.named_parameters()}
    return sort_parameters(shapes, rules_for(model.config, choices=config.groups))


def gradient(name: str, shape: tuple[int, ...], *, step: int) -> Tensor:
    draw = torch.Generator().manual_seed(1000 * step + sum(map(ord, name)))
    whole = torch.randn(shape, generator=draw)
    if (name, step) == SPOILT:
        whole.view(-1)[prod(shape) // 2] = torch.nan
    return whole


# A gradient with one number that is none: one matrix of many stays as it was.
SPOILT = ("model.layers.1.mlp.experts.down_proj", 1)


def alone(kind: TinyKind, config: MuonConfig, *, num_steps: int = NUM_STEPS) -> dict[str, Tensor]:
    model = model_of(kind)
    named = dict(model.named_parameters())
    membership = membership_of(model, config)
    muon = ReferenceMuon(named, membership, config)
    for step in range(num_steps):
        for name, it in named.items():
            it.grad = gradient(name, tuple(it.shape), step=step)
        muon.step()
    return {name: named[name].detach() for name in membership.muon}


def part_of(whole: Tensor, name: str, like: Tensor, *, rank: int) -> Tensor:
    """Return what this rank holds of a tensor, placed as a parameter is."""
    local = torch.zeros_like(local_part(like))
    if (box := box_of(layout_of(name, like), rank)) is not None:
        some = whole[slice(*box.experts)] if whole.ndim == 3 else whole
        local.copy_(some[..., slice(*box.rows), slice(*box.cols)])
    assert isinstance(like, DTensor)
    return DTensor.from_local(
        local, like.device_mesh, like.placements, shape=like.shape, stride=like.stride()
    )


def muon_on(
    ranks: Ranks, kind: TinyKind, sizes: MeshConfig, config: MuonConfig, **options: Any
) -> tuple[dict[str, Any], ShardedMuon]:
    # Torch would tell of each gather that it takes two steps.
    logging.disable(logging.WARNING)
    model = model_of(kind)
    membership = membership_of(model, config)
    parallelize(model, make_meshes(sizes, world=ranks.world))
    named = dict(model.named_parameters())
    muon = ShardedMuon(
        named,
        membership,
        config,
        cluster=Cluster(num_ranks=ranks.world, ranks_per_node=2),
        options=PlanOptions(orthogonalize=config.orthogonalize, **options),
    )
    return named, muon


def train(named: dict[str, Any], muon: ShardedMuon, steps: range, *, rank: int) -> None:
    for step in steps:
        for name in muon.names:
            it = named[name]
            it.grad = part_of(gradient(name, tuple(it.shape), step=step), name, it, rank=rank)
        muon.step()


def found_on(ranks: Ranks, kind: TinyKind, sizes: MeshConfig, options: dict[str, Any]) -> Any:
    named, muon = muon_on(ranks, kind, sizes, CONFIG, **options)
    train(named, muon, range(NUM_STEPS), rank=ranks.rank)
    moved = bytes_moved(muon.plan)
    return {
        "weights": {name: named[name].full_tensor().detach().numpy() for name in muon.names},
        "counts": dict(muon.counts),
        "predicted": sum(int(moved[link][0][ranks.rank]) for link in LINKS),
        "planned": num_orthogonalized(muon.plan),
        "units": len(muon.plan.units),
        "routes": sorted({job.route for job in muon.plan.jobs}),
    }


ONCE = {"redo": "never"}
LAYOUTS: list[tuple[TinyKind, int, dict[str, int], dict[str, Any]]] = [
    ("dense", 2, {}, {}),
    ("dense", 4, {"dense_replicate": 2}, ONCE),
    ("dense", 8, {"dense_replicate": 2, "context": 2}, {"redo": "always"}),
    ("qwen3_moe", 4, {"expert_parallel": 2}, {}),
    ("qwen3_moe", 4, {"dense_replicate": 4, "expert_replicate": 2}, ONCE),
    ("qwen3_moe", 8, {"context": 2, "expert_parallel": 8}, ONCE),
    ("qwen3_moe", 8, {"expert_replicate": 2}, {**ONCE, "job_bytes": 4096}),
    ("qwen3_moe", 8, {"dense_replicate": 4, "expert_parallel": 2}, {**ONCE, "depth": 1}),
    ("deepseek_v3", 4, {"expert_parallel": 4}, {}),
    ("deepseek_v3", 8, {"context": 2, "expert_parallel": 8}, ONCE),
    ("deepseek_v3", 8, {"dense_replicate": 8}, {**ONCE, "relay_s": 1e-12}),
    (
        "deepseek_v3",
        8,
        {"dense_replicate": 2, "expert_replicate": 4, "expert_parallel": 2},
        ONCE,
    ),
]


@pytest.mark.parametrize(("kind", "world", "sizes", "options"), LAYOUTS, ids=str)
def test_sharded_is_the_reference_to_the_bit_and_moves_what_was_planned(
    kind: TinyKind, world: int, sizes: dict[str, int], options: dict[str, Any]
) -> None:
    config = MeshConfig.model_validate(sizes)
    expected = alone(kind, CONFIG)
    found = on_ranks(world, lambda ranks: found_on(ranks, kind, config, options))
    for it in found:
        assert isinstance(it, dict), it
        assert it["weights"].keys() == expected.keys()
        for name, weights in it["weights"].items():
            assert torch.equal(torch.from_numpy(weights), expected[name]), name
        assert it["counts"].get("bytes", 0) == NUM_STEPS * it["predicted"]
    done = sum(it["counts"].get("matrices", 0) for it in found)
    assert done == NUM_STEPS * found[0]["planned"]
    if options.get("redo") == "never":
        assert found[0]["planned"] == found[0]["units"]
    if "relay_s" in options:
        assert "relayed" in found[0]["routes"]


def test_a_matrix_that_is_not_finite_stays_and_learns_again_later() -> None:
    name, _ = SPOILT
    before, after, later = (alone("qwen3_moe", CONFIG, num_steps=num)[name] for num in (1, 2, 3))
    is_kept = (before == after).all(dim=(1, 2))
    assert is_kept.sum() == 1
    assert later.isfinite().all()
    assert not (after == later).all(dim=(1, 2)).any()


def test_whole_experts_move_nothing() -> None:
    def work(ranks: Ranks) -> list[str]:
        _, muon = muon_on(ranks, "qwen3_moe", MeshConfig(expert_parallel=8), CONFIG)
        return [
            job.route
            for job in muon.plan.jobs
            if "experts" in muon.plan.units[job.units[0]].parameter
        ]

    for routes in on_ranks(8, work):
        assert routes
        assert {*routes} == {"local"}


def test_products_in_single_precision_are_as_equal() -> None:
    config = CONFIG.model_copy(update={"orthogonalize": NewtonSchulzConfig(dtype="float32")})

    def work(ranks: Ranks) -> Any:
        named, muon = muon_on(ranks, "dense", MeshConfig(dense_replicate=2), config, **ONCE)
        train(named, muon, range(2), rank=ranks.rank)
        return {name: named[name].full_tensor().detach().numpy() for name in muon.names}

    expected = alone("dense", config, num_steps=2)
    for weights in on_ranks(4, work):
        for name, it in weights.items():
            assert torch.equal(torch.from_numpy(it), expected[name]), name


def test_a_parameter_without_a_gradient_on_some_ranks_has_one_of_zeros() -> None:
    def work(ranks: Ranks) -> bool:
        named, muon = muon_on(ranks, "dense", MeshConfig(dense_replicate=2), CONFIG, **ONCE)
        for name in muon.names:
            it = named[name]
            zeros = torch.zeros(it.shape)
            it.grad = None if ranks.rank % 2 else part_of(zeros, name, it, rank=ranks.rank)
        before = {name: named[name].full_tensor().detach().clone() for name in muon.names}
        muon.step()
        decay = 1 - CONFIG.lr * CONFIG.weight_decay
        return all(
            torch.equal(named[name].full_tensor().detach(), before[name] * decay)
            for name in muon.names
        )

    assert on_ranks(4, work) == [True] * 4


def test_training_that_goes_on_from_a_state_is_the_same_to_the_bit() -> None:
    sizes = MeshConfig(dense_replicate=2, expert_parallel=2)

    def work(ranks: Ranks) -> Any:
        named, muon = muon_on(ranks, "qwen3_moe", sizes, CONFIG)
        train(named, muon, range(2), rank=ranks.rank)
        again, other = muon_on(ranks, "qwen3_moe", sizes, CONFIG)
        for name, it in again.items():
            local_part(it.data).copy_(local_part(named[name].data))
        other.load_state_dict(muon.state_dict())
        train(again, other, range(2, 4), rank=ranks.rank)
        return {name: again[name].full_tensor().detach().numpy() for name in other.names}

    expected = alone("qwen3_moe", CONFIG, num_steps=4)
    for weights in on_ranks(4, work):
        for name, it in weights.items():
            assert torch.equal(torch.from_numpy(it), expected[name]), name


def test_ranks_with_other_plans_are_told_before_anything_hangs() -> None:
    def work(ranks: Ranks) -> None:
        muon_on(ranks, "dense", MeshConfig(), CONFIG, depth=1 + (ranks.rank == 2))

    for said in on_ranks(4, work):
        assert said.startswith("ValueError: ranks [2] plan another optimizer step than rank 0")


def test_a_rank_that_does_not_come_ends_the_others_with_the_step_and_the_job() -> None:
    def work(ranks: Ranks) -> str:
        named, muon = muon_on(ranks, "dense", MeshConfig(), CONFIG)
        train(named, muon, range(1), rank=ranks.rank)
        if ranks.rank == 1:
            time.sleep(9)
            return "slept"
        train(named, muon, range(1, 2), rank=ranks.rank)
        return "met"

    first, second = on_ranks(2, work, timeout_s=5.0)
    assert second == "slept"
    assert first.startswith("ExchangeError: optimizer step 1, job ")
    assert "rank 0 waits in vain: " in first
