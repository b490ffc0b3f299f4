"""Write tiny model folders, tokenizer and all, that need no network: for tests and first runs."""

from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    Kimi_K25Config,
    Kimi_K25ForConditionalGeneration,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3MoeConfig,
)

TinyKind = Literal["dense", "qwen3_moe", "deepseek_v3", "kimi_k25"]

# These vanish when a text is decoded without special tokens.
SPECIAL = ("<pad>", "<|endoftext|>", "<|im_start|>", "<|im_end|>")
# These stay: they are part of what a message says.
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
VOCABULARY = 256 + len(SPECIAL) + len(MARKS)
PAD, END = SPECIAL[0], SPECIAL[-1]

# ChatML, with tools as Qwen and Hermes write them.
CHAT_TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n\\nSignatures, as JSON, within <tools></tools>:\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>\\n\\nCall one with a JSON object within marks:\\n<tool_call>\\n' }}
    {{- '{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message.role != 'system' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {%- set called = call.function or call %}
            {{- '\\n' if message.content or not loop.first }}
            {{- '<tool_call>\\n{"name": "' + called.name + '", "arguments": ' }}
            {{- called.arguments if called.arguments is string else called.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def save_tiny(folder: Path, kind: TinyKind, *, seed: int) -> None:
    """Write a complete model folder: config, safetensors, tokenizer.

    `kimi_k25` has a vision tower too, as the published model has.
    """
    model = random_model(tiny_config(kind), seed=seed)
    # Of several ranks transformers lets one write; here each has a folder of its own.
    model.should_save_on_this_rank = lambda _: True  # type: ignore[assignment]
    model.save_pretrained(folder)
    if kind == "kimi_k25":
        _rename_as_published(folder / "model.safetensors")
    tiny_tokenizer().save_pretrained(folder)


def tiny_config(kind: TinyKind) -> PreTrainedConfig:
    """Return the config of a model of 2 layers, 64 wide, over the tiny tokenizer's vocabulary."""
    match kind:
        case "dense":
            return Qwen3Config(intermediate_size=128, tie_word_embeddings=True, **_SIZES, **_HEADS)
        case "qwen3_moe":
            return Qwen3MoeConfig(
                num_experts=8, num_experts_per_tok=2, norm_topk_prob=True, **_EXPERTS, **_HEADS
            )
        case "deepseek_v3":
            return _deepseek_v3(num_groups=2)
        case "kimi_k25":
            return Kimi_K25Config(
                text_config=_deepseek_v3(num_groups=1),
                vision_config=_VISION,
                projection_hidden_size=32,
                tie_word_embeddings=False,
            )


def random_model(config: PreTrainedConfig, *, seed: int) -> PreTrainedModel:
    """Initialise a model from the seed; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(config, Kimi_K25Config):
            return Kimi_K25ForConditionalGeneration(config)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        return model


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of one token a byte, with the marks and the template of a chat."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in MARKS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _rename_as_published(path: Path) -> None:
    # Transformers 5.24 writes the text model's layers under the vision tower's word for them.
    tensors = load_file(path)
    named = {name.replace(".model.blocks.", ".model.layers."): tensors[name] for name in tensors}
    save_file(named, path, metadata={"format": "pt"})


def _deepseek_v3(*, num_groups: int) -> DeepseekV3Config:
    return DeepseekV3Config(
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_group=num_groups,
        topk_group=1,
        first_k_dense_replace=1,
        num_mtp_layers=0,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=32,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=16,
        **_EXPERTS,
    )


_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "max_position_embeddings": 32768,
    # Wider than usual, for so narrow a model: it must not predict every byte alike.
    "initializer_range": 0.1,
    "bos_token_id": None,
    "pad_token_id": 256 + SPECIAL.index(PAD),
    "eos_token_id": 256 + SPECIAL.index(END),
}
_HEADS: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
_EXPERTS: dict[str, Any] = {
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "tie_word_embeddings": False,
    **_SIZES,
}
_VISION: dict[str, Any] = {
    "pos_emb_height": 4,
    "pos_emb_width": 4,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 64,
}
