import torch

from trainer.muon.config import NewtonSchulzConfig
from trainer.muon.polar import exact_newton_schulz, polar_factor


def test_the_polar_factor_has_orthonormal_rows_and_is_nearest() -> None:
    matrices = torch.randn(3, 4, 9, generator=torch.Generator().manual_seed(0)).double()
    found = polar_factor(matrices)
    assert torch.allclose(found @ found.mT, torch.eye(4).double().expand(3, 4, 4))
    # What a polar factor takes from its matrix is symmetric and positive.
    rest = matrices @ found.mT
    assert torch.allclose(rest, rest.mT)
    assert (torch.linalg.eigvalsh(rest) > 0).all()


def test_five_steps_bring_all_but_small_singular_values_near_one() -> None:
    matrix = torch.diag(torch.tensor([1.0, 0.5, 0.1, 0.02, 0.0]))
    found = exact_newton_schulz(matrix, config=NewtonSchulzConfig()).diagonal()
    assert ((found[:4] > 0.65) & (found[:4] < 1.2)).all()
    assert found[4] == 0


def test_ten_steps_of_deepseek_settle_at_one() -> None:
    matrix = torch.diag(torch.tensor([1.0, 0.5, 0.1, 0.02]))
    config = NewtonSchulzConfig(coefficients="deepseek_v4")
    found = exact_newton_schulz(matrix, config=config).diagonal()
    assert ((found - 1).abs() < 0.02).all()
