import math

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from tests.trainer.forked import on_ranks
from trainer.muon.config import MuonConfig
from trainer.optimizer import (
    OptimizerConfig,
    clip_gradients,
    global_norm,
    make_optimizer,
    membership,
    param_groups,
    set_rate,
    shorten_names,
)
from trainer.ranks import Ranks
from trainer.tiny import TinyKind, random_model, tiny_config

KINDS: tuple[TinyKind, ...] = ("dense", "qwen3_moe", "deepseek_v3")


@pytest.mark.parametrize("kind", KINDS)
def test_each_parameter_is_in_one_group_and_embeddings_do_not_decay(kind: TinyKind) -> None:
    model = random_model(tiny_config(kind), seed=0)
    decayed, undecayed = param_groups(model)
    named = dict(model.named_parameters())
    assert sorted([*decayed.members, *undecayed.members]) == sorted(named)
    assert "model.embed_tokens.weight" in undecayed.members
    assert all(it.ndim > 1 for it in decayed.members.values())
    assert all(it.ndim == 1 for name, it in undecayed.members.items() if "embed" not in name)


def test_the_membership_is_told_with_layers_folded() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    first, second = membership(param_groups(model))
    assert first.startswith("AdamW, decayed: ")
    assert "model.layers.*.self_attn.q_proj.weight" in first
    assert second.endswith("model.norm.weight")


@pytest.mark.parametrize("kind", KINDS)
def test_muon_trains_the_matrices_of_layers_and_adamw_all_else(kind: TinyKind) -> None:
    model = random_model(tiny_config(kind), seed=0)
    muon, decayed, undecayed = param_groups(model, config=OptimizerConfig(kind="muon"))
    named = dict(model.named_parameters())
    assert sorted([*muon.members, *decayed.members, *undecayed.members]) == sorted(named)
    assert all(".layers." in name and it.ndim > 1 for name, it in muon.members.items())
    assert "model.embed_tokens.weight" in undecayed.members
    assert not any("self_attn" in name and it.ndim > 1 for name, it in decayed.members.items())


def test_the_matrices_of_muon_are_told_by_name_and_shape() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    lines = membership(param_groups(model, config=OptimizerConfig(kind="muon")))
    rows, cols = model.get_parameter("model.layers.0.self_attn.q_proj.weight").shape
    told = f"Muon: 2 matrices of {rows} x {cols}, {2 * rows * cols:,} weights: "
    assert f"{told}model.layers.*.self_attn.q_proj.weight" in lines
    assert sum(line.startswith("AdamW, ") for line in lines) == 2


def test_a_family_without_rules_is_refused_in_one_line() -> None:
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16))
    with pytest.raises(ValueError, match=r"model type 'gpt2': no rules say how Muon cuts it"):
        param_groups(model, config=OptimizerConfig(kind="muon"))


def test_a_step_of_muon_moves_matrices_at_its_own_rate_after_the_same_warm_up() -> None:
    model = random_model(tiny_config("dense"), seed=0)
    config = OptimizerConfig(kind="muon", lr=0.0, warmup_steps=2, muon=MuonConfig(lr=0.1))
    optimizer = make_optimizer(param_groups(model, config=config), config=config)
    set_rate(optimizer, 0, config=config)
    before = {name: it.detach().clone() for name, it in model.named_parameters()}
    draw = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)
    optimizer.step()
    moved = {name for name, it in model.named_parameters() if not torch.equal(it, before[name])}
    assert moved == set(param_groups(model, config=config)[0].members)
    name = "model.layers.0.self_attn.q_proj.weight"
    step = model.get_parameter(name).detach() - before[name]
    # As far as AdamW would at this rate: 0.05, the half of it, times 0.2.
    assert step.square().mean().sqrt() == pytest.approx(0.05 * 0.2, rel=0.2)


def test_names_are_told_once_with_their_numbers_starred() -> None:
    names = ["a.0.experts.1.w", "a.1.experts.0.w", "b2.w"]
    assert shorten_names(names) == ["a.*.experts.*.w", "b2.w"]


def test_only_matrices_decay() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Embedding(2, 2))
    before = {name: it.detach().clone() for name, it in model.named_parameters()}
    optimizer = make_optimizer(param_groups(model), config=OptimizerConfig(lr=0.1, weight_decay=1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    moved = {name for name, it in model.named_parameters() if not torch.equal(it, before[name])}
    assert moved == {"0.weight"}


def test_the_rate_is_a_function_of_the_step() -> None:
    model = nn.Linear(1, 1)
    config = OptimizerConfig(lr=1.0, warmup_steps=4)
    optimizer = make_optimizer(param_groups(model), config=config)
    rates = [set_rate(optimizer, step, config=config) for step in (5, 0, 1, 3)]
    assert rates == [1.0, 0.25, 0.5, 1.0]


def test_gradients_are_scaled_down_together_and_never_up() -> None:
    one, other = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    one.grad, other.grad = torch.tensor([3.0]), torch.tensor([4.0])
    clip_gradients([one, other], norm=5.0, max_norm=10.0)
    assert (one.grad.item(), other.grad.item()) == (3.0, 4.0)
    clip_gradients([one, other], norm=5.0, max_norm=1.0)
    assert global_norm([one.grad, other.grad]) == pytest.approx(1.0, rel=1e-6)


def test_a_gradient_that_is_no_number_is_told_and_left_alone() -> None:
    one = nn.Parameter(torch.zeros(2))
    one.grad = torch.tensor([math.nan, 1.0])
    norm = global_norm([one.grad])
    assert math.isnan(norm)
    clip_gradients([one], norm=norm, max_norm=0.5)
    assert one.grad[1].item() == 1.0


@pytest.mark.parametrize("world", [2, 4])
def test_the_norm_of_the_whole_gradient_is_that_of_one_process(world: int) -> None:
    draw = torch.Generator().manual_seed(0)
    parts = [[torch.randn(5, generator=draw), torch.randn(3, 2, generator=draw)] for _ in range(4)]

    def work(ranks: Ranks) -> float:
        parameters = [nn.Parameter(torch.zeros(5)), nn.Parameter(torch.zeros(3, 2))]
        for number, parameter in enumerate(parameters):
            own = [part[number] for it, part in enumerate(parts) if ranks.has_share(it)]
            parameter.grad = torch.stack(own).sum(0)
        ranks.sum_gradients(parameters, "gradients")
        return global_norm(it.grad for it in parameters if it.grad is not None)

    whole = [sum(part[number] for part in parts) for number in range(2)]
    for found in on_ranks(world, work):
        assert found == pytest.approx(global_norm(whole), rel=1e-6)
