from typing import get_args

import pytest
import torch
from transformers import (
    BertConfig,
    BloomConfig,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from trainer.probe import require_packable
from trainer.tiny import TinyKind, random_model, tiny_config

torch.set_num_threads(1)

SIZES = {"vocab_size": 16, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
NO_MARKS = {"bos_token_id": None, "eos_token_id": None}
LIKE_LLAMA = {**SIZES, **NO_MARKS, "intermediate_size": 32, "num_key_value_heads": 2}
SMALL_GPT = {"vocab_size": 16, "n_embd": 32, "n_layer": 2, "n_head": 2}


def make(config: PreTrainedConfig) -> PreTrainedModel:
    return random_model(config, seed=0).eval()


@pytest.mark.parametrize("kind", get_args(TinyKind))
def test_the_tiny_models_pass(kind: TinyKind) -> None:
    require_packable(make(tiny_config(kind).get_text_config()), name=kind)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**LIKE_LLAMA),
        MistralConfig(**LIKE_LLAMA, sliding_window=2),
        GPT2Config(**SMALL_GPT, **NO_MARKS),
    ],
    ids=["llama", "sliding window", "learnt positions"],
)
def test_causal_models_of_other_makes_pass(config: PreTrainedConfig) -> None:
    require_packable(make(config), name="it")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (BertConfig(**SIZES, intermediate_size=32), "its tokens see later ones"),
        # Its attention takes positions from the mask alone.
        (BloomConfig(**SMALL_GPT), "in a packed batch one row sees another"),
        (GraniteConfig(**LIKE_LLAMA, logits_scaling=8.0), "not hidden states times a matrix"),
    ],
    ids=["bert", "bloom", "granite"],
)
def test_a_model_that_would_train_wrongly_is_refused(config: PreTrainedConfig, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^it: .*{reason}"):
        require_packable(make(config), name="it")
