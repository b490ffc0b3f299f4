from collections import Counter
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    PreTrainedConfig,
    Qwen2Config,
)

from trainer.muon.config import GroupChoices
from trainer.muon.families import rules_for
from trainer.muon.units import Membership, sort_parameters
from trainer.tiny import TinyKind, random_model, tiny_config

KINDS: tuple[TinyKind, ...] = ("dense", "qwen3_moe", "deepseek_v3", "kimi_k25")
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
}
LATENT: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_mtp_layers": 0,
    "vocab_size": 50,
}


def shapes_of(config: PreTrainedConfig) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return {name: tuple(it.shape) for name, it in model.named_parameters()}


def sort(config: PreTrainedConfig, **choices: Any) -> Membership:
    return sort_parameters(
        shapes_of(config), rules_for(config, choices=GroupChoices.model_validate(choices))
    )


def units(membership: Membership, ending: str) -> Counter[tuple[int, int]]:
    return Counter(unit.shape for unit in membership.units if unit.parameter.endswith(ending))


@pytest.mark.parametrize("kind", KINDS)
def test_each_weight_of_a_tiny_model_has_its_optimizer_and_muon_has_all_other_matrices(
    kind: TinyKind,
) -> None:
    config = tiny_config(kind)
    model = random_model(config, seed=0)
    shapes = {name: tuple(it.shape) for name, it in model.named_parameters()}
    found = sort_parameters(shapes, rules_for(config, choices=GroupChoices()))
    assert {*found.muon} | {*found.adamw} == {*shapes}
    assert not {*found.muon} & {*found.adamw}
    assert sum(unit.numel for unit in found.units) == sum(
        model.get_parameter(name).numel() for name in found.muon
    )
    reasons = {"embedding", "head", "norm", "bias", "router", "vision"}
    assert {*found.adamw.values()} <= reasons
    left = {found.adamw[name] for name in found.adamw if len(shapes[name]) > 1}
    assert left <= reasons - {"norm", "bias"}


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        MistralConfig(**SIZES),
        Qwen2Config(**SIZES),
        MixtralConfig(num_local_experts=4, **SIZES),
    ],
    ids=lambda it: it.model_type,
)
def test_llama_like_models_keep_projections_whole_and_part_gates_from_ups(
    config: PreTrainedConfig,
) -> None:
    found = sort(config)
    assert units(found, "q_proj.weight") == {(64, 64): 2}
    assert units(found, "k_proj.weight") == units(found, "v_proj.weight") == {(32, 64): 2}
    assert units(found, "o_proj.weight") == {(64, 64): 2}
    num = 2 * 4 if config.model_type == "mixtral" else 2
    apart = units(found, "gate_proj.weight") + units(found, ".up_proj.weight")
    assert units(found, "gate_up_proj") + apart == {(96, 64): 2 * num}
    assert units(found, "down_proj") + units(found, "down_proj.weight") == {(64, 96): num}


def test_latent_attention_is_cut_by_head_where_it_projects_up() -> None:
    found = sort(tiny_config("deepseek_v3"))
    assert units(found, "q_b_proj.weight") == {(16, 32): 2 * 4}
    assert units(found, "kv_b_proj.weight") == {(8, 16): 2 * 4, (16, 16): 2 * 4}
    assert units(found, "q_a_proj.weight") == {(32, 64): 2}
    assert units(found, "o_proj.weight") == {(64, 64): 2}


def test_queries_without_latents_are_cut_by_head_too() -> None:
    found = sort(DeepseekV3Config(q_lora_rank=None, attention_bias=True, **LATENT))
    assert units(found, "q_proj.weight") == {(192, 64): 4}
    assert {*found.adamw.values()} == {"embedding", "head", "norm", "bias"}


@pytest.mark.parametrize(
    ("choices", "ending", "expected"),
    [
        ({"heads": 2}, "q_proj.weight", {(32, 64): 2 * 2}),
        ({"heads": 1}, "k_proj.weight", {(16, 64): 2 * 2}),
        ({"heads": 2}, "k_proj.weight", {(32, 64): 2}),
        ({"output_heads": 1}, "o_proj.weight", {(64, 16): 2 * 4}),
        ({"output_heads": 2}, "o_proj.weight", {(64, 32): 2 * 2}),
        ({"router": "muon"}, "mlp.gate.weight", {(8, 64): 2}),
        ({"router": "adamw"}, "mlp.gate.weight", {}),
    ],
)
def test_heads_and_routers_are_grouped_as_chosen(
    choices: dict[str, Any], ending: str, expected: dict[tuple[int, int], int]
) -> None:
    assert units(sort(tiny_config("qwen3_moe"), **choices), ending) == expected


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({"split_kv": False}, {(24, 16): 2 * 4}),
        ({"split_kv": False, "heads": 2}, {(48, 16): 2 * 2}),
        ({"split_kv": False, "heads": 0}, {(96, 16): 2}),
    ],
)
def test_keys_and_values_of_a_head_can_be_one_matrix(
    choices: dict[str, Any], expected: dict[tuple[int, int], int]
) -> None:
    assert units(sort(tiny_config("deepseek_v3"), **choices), "kv_b_proj.weight") == expected


@pytest.mark.parametrize(
    ("kind", "choices", "said"),
    [
        ("dense", {"heads": 3}, "heads = 3: does not divide the 4 heads"),
        ("dense", {"heads": 4}, "heads = 4: does not divide the 2 key-value heads"),
        ("dense", {"output_heads": 3}, "output_heads = 3: does not divide the 4 heads"),
        ("deepseek_v3", {"heads": 2}, "heads = 2: keys and values of several heads"),
    ],
)
def test_groups_that_do_not_fit_the_heads_are_refused(
    kind: TinyKind, choices: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        rules_for(tiny_config(kind), choices=GroupChoices.model_validate(choices))


def test_a_projection_of_other_rows_than_the_configs_heads_have_is_refused() -> None:
    rules = rules_for(tiny_config("dense"), choices=GroupChoices())
    shapes = {"model.layers.0.self_attn.q_proj.weight": (128, 64)}
    with pytest.raises(ValueError, match=r"q_proj\.weight \[128, 64\].* 128 rows, expected 1 x 64"):
        sort_parameters(shapes, rules)


def test_an_unknown_family_is_told_how_to_declare_rules() -> None:
    with pytest.raises(ValueError, match="model type 'gpt2': no rules") as refused:
        rules_for(GPT2Config(), choices=GroupChoices())
    assert "Rule(pattern=" in str(refused.value)
    assert "deepseek_v3, llama, mistral" in str(refused.value)
