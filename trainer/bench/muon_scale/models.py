"""Get the shapes of a model's parameters, and its units, without its weights."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    DeepseekV3Config,
    PreTrainedConfig,
)

from trainer.muon.config import GroupChoices
from trainer.muon.families import rules_for
from trainer.muon.units import Membership, sort_parameters

# Dims of a tensor with the matrices of all experts of a layer.
_DIMS_OF_EXPERTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """What of a model the plan depends on."""

    name: str
    # Of each parameter.
    shapes: dict[str, tuple[int, ...]]
    membership: Membership

    @property
    def num_adamw(self) -> int:
        """Number of weights that AdamW trains."""
        return sum(prod(self.shapes[name]) for name in self.membership.adamw)

    @property
    def num_muon(self) -> int:
        """Number of weights that Muon trains."""
        return sum(unit.numel for unit in self.membership.units)

    @property
    def num_experts(self) -> int:
        """Experts of a layer; 1 for a dense model."""
        return max((shape[0] for shape in self.shapes.values() if is_of_experts(shape)), default=1)


def is_of_experts(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor of this shape has the matrices of all experts of a layer."""
    return len(shape) == _DIMS_OF_EXPERTS


def read_shapes(folder: Path | None, *, groups: GroupChoices) -> Shapes:
    """Return the shapes of the model of a folder, or of Kimi K2.

    Raises:
        ValueError: there is no config.json, or Muon does not know the family.
    """
    if folder is None:
        return shapes_of(kimi_k2(), name="Kimi K2", groups=groups)
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder}: has no config.json, expected the folder of a model")
    config = AutoConfig.from_pretrained(folder).get_text_config()
    return shapes_of(config, name=folder.name, groups=groups)


def shapes_of(config: PreTrainedConfig, *, name: str, groups: GroupChoices) -> Shapes:
    """Return the shapes of the model of a config."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {of: tuple(parameter.shape) for of, parameter in model.named_parameters()}
    membership = sort_parameters(shapes, rules_for(config, choices=groups))
    return Shapes(name=name, shapes=shapes, membership=membership)


def kimi_k2(*, num_layers: int = 61) -> PreTrainedConfig:
    """Return the config of Kimi K2 (arXiv 2507.20534), which is also that of K2.5's text model."""
    return DeepseekV3Config(
        vocab_size=163840,
        hidden_size=7168,
        intermediate_size=18432,
        moe_intermediate_size=2048,
        num_hidden_layers=num_layers,
        first_k_dense_replace=1,
        n_routed_experts=384,
        n_shared_experts=1,
        num_attention_heads=64,
        num_key_value_heads=64,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
    )
