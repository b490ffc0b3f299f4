from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface
from transformers.integrations.moe import ExpertsInterface, grouped_mm_experts_forward

from trainer.invariant import NAME, make_invariant, round_up
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)

Attend: Any = AttentionInterface()[NAME]


def module(*, groups: int) -> Any:
    it: Any = torch.nn.Module()
    it.num_key_value_groups = groups
    return it


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("num_new", [1, 16])
@pytest.mark.parametrize(
    ("heads", "key_heads", "width", "value_width"), [(6, 2, 8, 8), (3, 3, 24, 16)]
)
def test_it_attends_as_the_definition_says(
    num_new: int, heads: int, key_heads: int, width: int, value_width: int
) -> None:
    query = noise(2, heads, num_new, width, seed=1)
    key = noise(2, key_heads, 64, width, seed=2)
    value = noise(2, key_heads, 64, value_width, seed=3)
    mask = torch.zeros(2, 1, num_new, 64).masked_fill(
        noise(2, 1, num_new, 64, seed=4) > 1, -torch.inf
    )
    attended, _ = Attend(
        module(groups=heads // key_heads), query, key, value, mask, scaling=0.3, dropout=0.0
    )
    keys, values = (it.repeat_interleave(heads // key_heads, dim=1) for it in (key, value))
    expected = (query @ keys.transpose(2, 3) * 0.3 + mask).softmax(dim=-1) @ values
    torch.testing.assert_close(attended, expected.transpose(1, 2), atol=1e-6, rtol=1e-5)


def test_rows_without_a_context_get_zeros_and_disturb_no_other() -> None:
    query, key = noise(4, 2, 1, 8, seed=1), noise(3, 2, 64, 8, seed=2)
    mask = torch.zeros(3, 1, 1, 64)
    with_idle, _ = Attend(module(groups=1), query, key, key, mask)
    alone, _ = Attend(module(groups=1), query[:3], key, key, mask)
    assert torch.equal(with_idle, functional.pad(alone, (0, 0, 0, 0, 0, 0, 0, 1)))
    assert not with_idle[3].any()


def test_the_experts_of_a_token_say_the_same_as_without_idle_rows() -> None:
    model = random_model(tiny_config("qwen3_moe"), seed=0)
    experts = model.get_decoder().layers[0].mlp.experts
    hidden_TD, weights_TK = noise(5, 64, seed=1), noise(5, 2, seed=2).softmax(dim=-1)
    experts_TK = torch.tensor([[0, 1], [7, 3], [0, 5], [2, 6], [0, 7]])
    with torch.no_grad():
        said = ExpertsInterface()[NAME](experts, hidden_TD, experts_TK, weights_TK)
        expected = grouped_mm_experts_forward(experts, hidden_TD, experts_TK, weights_TK)
    torch.testing.assert_close(said, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "qwen3_moe", "deepseek_v3"])
def test_an_invariant_model_says_the_same_of_a_whole_text(kind: Any) -> None:
    model, ids_1T = random_model(tiny_config(kind), seed=0), torch.arange(40)[None]
    with torch.no_grad():
        expected = model(input_ids=ids_1T, use_cache=False).logits
        make_invariant(model)
        said = model(input_ids=ids_1T, use_cache=False).logits
    torch.testing.assert_close(said, expected, atol=1e-5, rtol=1e-5)


def test_a_number_is_rounded_up_to_the_grain() -> None:
    assert [round_up(it, 16) for it in (0, 1, 16, 17)] == [0, 16, 16, 32]
