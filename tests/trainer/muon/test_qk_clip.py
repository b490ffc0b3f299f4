import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.muon.qk_clip import Mla, clip_mla, clip_plain, gammas

TAU = 100.0


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def logits(queries: Tensor, keys: Tensor, inputs: Tensor, *, num_heads: int) -> Tensor:
    """Return [H, T, T] of plain attention, keys shared by groups of heads."""
    of_queries = (inputs @ queries.T).view(len(inputs), num_heads, -1).transpose(0, 1)
    of_keys = (inputs @ keys.T).view(len(inputs), -1, of_queries.shape[-1]).transpose(0, 1)
    return of_queries @ of_keys.repeat_interleave(num_heads // len(of_keys), dim=0).mT


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=9))
def test_a_factor_is_tau_over_the_largest_logit_and_never_odd(largest: list[float]) -> None:
    found = gammas(torch.tensor(largest), tau=TAU)
    assert ((found > 0) & (found <= 1)).all()
    for factor, logit in zip(found.tolist(), largest, strict=True):
        is_clipped = TAU < logit < float("inf")
        assert factor == (pytest.approx(TAU / logit, rel=1e-5) if is_clipped else 1.0)


@pytest.mark.parametrize("num_keys", [4, 2, 1])
def test_clipped_heads_of_plain_attention_end_at_tau_and_others_stay(num_keys: int) -> None:
    queries, keys = draw(4 * 8, 16, seed=0), draw(num_keys * 8, 16, seed=1)
    inputs = draw(12, 16, seed=2)
    before = logits(queries, keys, inputs, num_heads=4)
    largest = before.amax((-2, -1))
    tau = float(largest.median())
    factors = gammas(largest, tau=tau)
    clip_plain(queries, keys, factors)
    after = logits(queries, keys, inputs, num_heads=4)
    assert torch.allclose(after, before * factors.view(-1, 1, 1))
    assert after.amax() == pytest.approx(tau)


def test_clipped_heads_of_latent_attention_end_at_tau_and_leave_the_shared_key_alone() -> None:
    mla = Mla(nope=8, rope=4, values=6)
    queries, keys_and_values = draw(3 * 12, 16, seed=0), draw(3 * 14, 16, seed=1)
    inputs, shared_key = draw(10, 16, seed=2), draw(10, 4, seed=3)

    def attend() -> Tensor:
        of_queries = (inputs @ queries.T).view(10, 3, 12).transpose(0, 1)
        of_keys = (inputs @ keys_and_values.T).view(10, 3, 14).transpose(0, 1)[..., :8]
        return of_queries[..., :8] @ of_keys.mT + of_queries[..., 8:] @ shared_key.T

    before, values = attend(), keys_and_values.view(3, 14, 16)[:, 8:].clone()
    factors = gammas(before.amax((-2, -1)), tau=float(before.amax()) / 2)
    clip_mla(queries, keys_and_values, factors, mla=mla)
    assert torch.allclose(attend(), before * factors.view(-1, 1, 1))
    assert torch.equal(keys_and_values.view(3, 14, 16)[:, 8:], values)


def test_heads_that_do_not_divide_the_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="queries of 10 rows, expected a multiple of 4"):
        clip_plain(torch.ones(10, 2), torch.ones(10, 2), torch.ones(4))
    with pytest.raises(ValueError, match="keys of 9 rows, expected a multiple of 2"):
        clip_plain(torch.ones(16, 2), torch.ones(9, 2), torch.ones(4))
    mla = Mla(nope=2, rope=1, values=1)
    with pytest.raises(ValueError, match="keys and values of 8 rows, expected 2 x 3"):
        clip_mla(torch.ones(6, 2), torch.ones(8, 2), torch.ones(2), mla=mla)
