from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.task.claims import Claim, Report
from trainer.bench.muon_scale.arrange import Meshes, adamw_ns, choose_meshes, lay_out_all
from trainer.bench.muon_scale.bench import claims, measure
from trainer.bench.muon_scale.config import ScaleConfig, read_config
from trainer.bench.muon_scale.models import Shapes, kimi_k2, read_shapes, shapes_of
from trainer.bench.muon_scale.points import Point, Policy, num_flops, point
from trainer.muon.config import GroupChoices
from trainer.muon.costs import Cluster
from trainer.muon.layout import box_of
from trainer.tiny import save_tiny


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    folder = tmp_path_factory.mktemp("bench")
    return measure(folder, quick=True), folder


@pytest.fixture(scope="module")
def two_layers() -> Shapes:
    return shapes_of(kimi_k2(num_layers=2), name="two", groups=GroupChoices())


def at(num_gpus: int, step_s: float, *, bound_s: float = 0.1, policy: Policy = "planned") -> Point:
    return Point(
        policy=policy,
        num_gpus=num_gpus,
        meshes=Meshes(dense=(num_gpus // 8, 8), expert=(1, num_gpus, 1)),
        step_s=step_s,
        bound_s=bound_s,
        product_s=0.1,
        memory_s=0.0,
        link_s={"nvlink": 0.0, "network": 0.0},
        repeated=1.0,
    )


def test_the_quick_bench_plans_each_policy_at_each_count_of_gpus_and_draws_them(
    quick: tuple[Report, Path],
) -> None:
    report, folder = quick
    about, *rows = report.rows
    assert about[0] == "Kimi K2, 2 layers"
    assert [row[:2] for row in rows[:6]] == [
        (policy, num) for num in (16, 64) for policy in ("planned", "redone", "gathered")
    ]
    assert (folder / "muon-scale.png").stat().st_size > 10_000
    steps: dict[Any, Any] = {row[:2]: row[3] for row in rows[:6]}
    assert steps["planned", 64] < steps["planned", 16] < steps["gathered", 16]


def test_kimi_k2_has_the_matrices_and_the_arithmetic_that_are_known_of_it(
    two_layers: Shapes,
) -> None:
    # One layer of two is dense, the other has 384 experts of three matrices and a shared one.
    shapes = [unit.shape for unit in two_layers.membership.units]
    assert shapes.count((2048, 7168)) == 2 * 384 + 2
    assert shapes.count((7168, 2048)) == 384 + 1
    assert shapes.count((7168, 18432)) == 1
    # Per head of both layers: queries up, keys up and values up.
    assert shapes.count((192, 1536)) == 128
    assert shapes.count((128, 512)) == 256
    experts = 1155 * 5 * (4 * 2048**2 * 7168 + 2 * 2048**3)
    assert 1.0 < num_flops(two_layers, ScaleConfig()) / experts < 1.2


def test_experts_are_spread_over_all_ranks_and_dense_weights_over_a_few(
    two_layers: Shapes,
) -> None:
    meshes = choose_meshes(512, dense_width=8, num_experts=384, node=8)
    layouts = lay_out_all(two_layers, meshes)
    expert = layouts["model.layers.1.mlp.experts.down_proj"]
    dense = layouts["model.layers.1.self_attn.o_proj.weight"]
    assert {len(piece.ranks) for piece in expert.pieces} == {1}
    assert len(expert.pieces) == 512
    assert {len(piece.ranks) for piece in dense.pieces} == {64}
    # The ranks that share an expert are in one node.
    sharing = [rank for rank in range(8) if box_of(expert, rank).experts == (0, 3)]
    assert sharing == [0, 1, 2, 3]


def test_meshes_use_all_ranks_whatever_the_experts() -> None:
    for num_ranks in (8, 64, 96, 256, 384, 768, 1024, 4096):
        for num_experts in (1, 60, 128, 384):
            it = choose_meshes(num_ranks, dense_width=8, num_experts=num_experts, node=8)
            assert np.prod(it.dense) == np.prod(it.expert) == num_ranks
            assert num_experts % it.expert[1] == 0
    with pytest.raises(ValueError, match="100 GPUs in groups of 8"):
        choose_meshes(100, dense_width=8, num_experts=384, node=8)


def test_adamw_is_part_of_the_step(two_layers: Shapes) -> None:
    meshes = choose_meshes(16, dense_width=8, num_experts=384, node=8)
    busy_N = adamw_ns(two_layers, meshes, Cluster(num_ranks=16, hbm_bytes_s=1e12))
    embeddings = 2 * 163840 * 7168
    assert busy_N.min() == pytest.approx(embeddings / 8 * 30 / 1e12 * 1e9, rel=1e-2)


def test_gathering_everything_costs_the_same_on_any_number_of_gpus(two_layers: Shapes) -> None:
    times = [
        point(two_layers, ScaleConfig(), policy="gathered", num_gpus=num, width=8).step_s
        for num in (64, 512)
    ]
    assert times[0] == pytest.approx(times[1], rel=0.05)


def test_claims_hold_plans_against_the_bound_and_the_step_against_its_time() -> None:
    points = [
        at(256, 0.3, bound_s=0.2),
        at(512, 0.19, bound_s=0.18),
        at(512, 0.35, policy="redone"),
    ]
    found = {claim.claim: claim for claim in claims(points, step_s=0.2)}
    holds = {name: (claim.figure, claim.holds) for name, claim in found.items()}
    assert holds["step at 256 GPUs by what no plan beats"] == (pytest.approx(1.5), False)
    assert holds["step at 512 GPUs by what no plan beats"][1]
    assert holds["fewest GPUs tried at which a step takes 0.2 s, 0 for none"] == (512, True)
    trap: Claim = next(claim for name, claim in found.items() if "trap" in name)
    assert trap.figure == pytest.approx(0.16)
    assert trap.holds


def test_no_number_of_gpus_is_claimed_where_none_is_fast_enough() -> None:
    found = list(claims([at(256, 0.3)], step_s=0.2))
    assert (found[-1].figure, found[-1].holds) == (0, False)


def test_settings_of_a_file_say_the_model_and_the_cluster(tmp_path: Path) -> None:
    save_tiny(tmp_path / "model", "qwen3_moe", seed=0)
    path = tmp_path / "scale.toml"
    path.write_text(
        f'model = "{tmp_path / "model"}"\ngpus = [2, 4]\ndense_width = 2\nother_widths = []\n'
        "[cluster]\nnum_ranks = 1\nranks_per_node = 2\n[plan]\ndepth = 2\n"
    )
    report = measure(tmp_path / "out", config=path)
    assert report.rows[0][0] == "model"
    assert [row[1] for row in report.rows[1:]] == [2, 2, 2, 4, 4, 4]


def test_settings_and_models_that_are_not_as_expected_are_named(tmp_path: Path) -> None:
    path = tmp_path / "scale.toml"
    path.write_text("gpu = [2]\n")
    with pytest.raises(ValueError, match=r"scale\.toml: gpu: Extra inputs"):
        read_config(path)
    path.write_text("gpus = [")
    with pytest.raises(ValueError, match=r"scale\.toml: is no TOML"):
        read_config(path)
    with pytest.raises(ValueError, match=r"has no config\.json"):
        read_shapes(tmp_path, groups=GroupChoices())
