from pathlib import Path

import pytest
import torch

from trainer.bench.muon.bench import QUICK, measure
from trainer.bench.muon.rounds import LOOP, OURS, TORCH, Timed
from trainer.bench.muon.sets import apart, experts, heads, random_parameters, stacked
from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.flops import flops


def test_each_set_is_measured_with_each_implementation(tmp_path: Path) -> None:
    report = measure(tmp_path / "bench", quick=True)
    names = {matrices.name for matrices, _ in QUICK}
    assert {(row[0], row[1]) for row in report.rows} == {
        (name, by) for name in names for by in (OURS, f"{OURS}, plain", LOOP, TORCH)
    }
    assert all(claim.figure > 0 for claim in report.claims)
    assert not any("dion" in claim.claim for claim in report.claims)
    # Of ranks: each matrix once, and no byte too many.
    *_, once, least = report.claims
    assert once.claim.startswith("matrices orthogonalized over those that exist (")
    assert (once.figure, once.holds) == (1.0, True)
    assert 1.0 <= least.figure <= 1.15
    assert not (tmp_path / "bench").exists()


def test_a_checkout_that_is_not_dions_is_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match=r"No module named 'dion', expected a checkout of github"):
        measure(tmp_path / "bench", quick=True, peer=tmp_path)


def test_others_get_the_same_matrices_apart_or_stacked() -> None:
    for matrices in (heads(layers=2, num=3, rows=4, cols=6), experts(num=2, rows=4, cols=6)):
        sizes = [it.numel() for it in random_parameters(matrices.shapes).values()]
        one, many = apart(matrices), stacked(matrices)
        assert len(one) == len(matrices.membership.units) == 6
        assert sum(it.numel() for it in one) == sum(it.numel() for it in many) == sum(sizes)
        in_stacks = [matrix for it in many for matrix in it]
        assert all(torch.equal(a, b) for a, b in zip(one, in_stacks, strict=True))


def test_speeds_are_medians_of_pairs_and_shares_count_the_arithmetic() -> None:
    matrices = heads(layers=1, num=2, rows=4, cols=8)
    num = 2 * flops(4, 8, config=NewtonSchulzConfig())
    timed = Timed(
        matrices=matrices,
        step_s={OURS: [1.0, 2.0, 1.0], TORCH: [3.0, 4.0, 9.0]},
        product_rate=[num * 2.0, num * 1.0, num * 1.0],
    )
    assert timed.flops == num
    assert timed.speed(OURS, over=TORCH) == 3.0
    assert timed.share(OURS) == 0.5
