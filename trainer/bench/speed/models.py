"""Make the small models that speed is measured on, as folders."""

from pathlib import Path
from typing import Literal

from transformers import Qwen3Config

from trainer.tiny import random_model, save_tiny, tiny_config, tiny_tokenizer

Size = Literal["tiny", "small"]

# Of the tiny tokenizer's tokens those that are one byte; ids of workloads are below it.
NUM_BYTES = 256


def save_model(folder: Path, size: Size) -> None:
    """Write a model folder: `tiny` as in the tests, or `small`, 11.5 million weights."""
    if size == "tiny":
        save_tiny(folder, "dense", seed=0)
        return
    random_model(_small(), seed=0).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


def _small() -> Qwen3Config:
    tiny = tiny_config("dense")
    return Qwen3Config(
        vocab_size=32768,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=tiny.max_position_embeddings,
        tie_word_embeddings=True,
        bos_token_id=None,
        pad_token_id=tiny.pad_token_id,
        eos_token_id=tiny.eos_token_id,
    )
