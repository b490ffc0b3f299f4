import json
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoTokenizer

from trainer.tiny import (
    MARKS,
    SPECIAL,
    VOCABULARY,
    TinyKind,
    random_model,
    save_tiny,
    tiny_config,
    tiny_tokenizer,
)

torch.set_num_threads(1)

TOKENIZER = tiny_tokenizer()
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("kind", get_args(TinyKind))
def test_a_tiny_folder_is_whole_small_and_the_same_for_the_same_seed(
    tmp_path: Path, kind: TinyKind
) -> None:
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        save_tiny(tmp_path / name, kind, seed=seed)
    one, same, other = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "same", "other")
    )
    assert one == same != other
    assert len(one) < 1_000_000
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    assert config.get("text_config", config)["vocab_size"] == VOCABULARY == len(TOKENIZER)
    loaded = AutoTokenizer.from_pretrained(tmp_path / "one", local_files_only=True)
    assert loaded.get_vocab() == TOKENIZER.get_vocab()
    assert loaded.chat_template == TOKENIZER.chat_template
    assert (loaded.eos_token, loaded.pad_token) == ("<|im_end|>", "<pad>")


def test_the_tiny_kimi_names_its_text_models_weights_as_the_published_one_does(
    tmp_path: Path,
) -> None:
    save_tiny(tmp_path, "kimi_k25", seed=0)
    names = load_file(tmp_path / "model.safetensors").keys()
    assert "language_model.lm_head.weight" in names
    assert "language_model.model.layers.1.mlp.experts.7.gate_proj.weight" in names
    assert any(name.startswith("vision_tower.") for name in names)


def test_making_a_random_model_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    random_model(tiny_config("dense"), seed=0)
    assert torch.equal(torch.random.get_rng_state(), before)


@given(text=st.text())
def test_any_text_is_its_bytes_as_tokens_and_back(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    if not any(token in text for token in SPECIAL + MARKS):
        assert len(ids) == len(text.encode())


@pytest.mark.parametrize("token", SPECIAL + MARKS)
def test_a_mark_is_one_token_and_only_those_of_messages_vanish(token: str) -> None:
    ids = TOKENIZER.encode(f"a{token}b")
    assert len(ids) == 3
    assert TOKENIZER.decode(ids) == f"a{token}b"
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == (
        "ab" if token in SPECIAL else f"a{token}b"
    )


def render(*messages: dict[str, Any], tools: tuple[Any, ...] = (), prompt: bool = False) -> str:
    return TOKENIZER.apply_chat_template(
        list(messages), tools=list(tools) or None, tokenize=False, add_generation_prompt=prompt
    )


def test_the_template_writes_a_chat_with_tools_as_qwen_does() -> None:
    called = {"type": "function", "function": {"name": "read", "arguments": {"path": "é"}}}
    text = render(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [called, called]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        tools=(TOOL,),
        prompt=True,
    )
    head, _, chat = text.partition("<|im_end|>\n")
    assert head.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n")
    assert json.dumps(TOOL) in head
    assert chat == (
        "<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n"
        '<tool_call>\n{"name": "read", "arguments": {"path": "é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "read", "arguments": {"path": "é"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\none\n</tool_response>\n"
        "<tool_response>\ntwo\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_a_chat_without_tools_has_no_more_than_its_messages() -> None:
    user = {"role": "user", "content": "Hi"}
    assert render(user) == "<|im_start|>user\nHi<|im_end|>\n"
    system = {"role": "system", "content": "Later."}
    assert render(user, system) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>system\nLater.<|im_end|>\n"
    )
    assert render(system, user).startswith("<|im_start|>system\nLater.<|im_end|>\n<|im_start|>user")
