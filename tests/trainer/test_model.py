import json
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, DeepseekV3ForCausalLM, T5Config

from trainer.model import (
    ModelConfig,
    load_model,
    load_tokenizer,
    save_model,
    set_weights,
    weights,
)
from trainer.tiny import TinyKind, save_tiny, tiny_tokenizer
from trainer.transfer import digest

torch.set_num_threads(1)

KINDS = get_args(TinyKind)
IDS = torch.arange(12)[None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tiny(tmp_path / "model", "dense", seed=0)
    return tmp_path / "model"


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_saved_loads_again_here_and_in_transformers(
    tmp_path: Path, kind: TinyKind
) -> None:
    save_tiny(tmp_path / "first", kind, seed=3)
    model = load_model(ModelConfig(source=str(tmp_path / "first")), seed=0)
    save_model(model, tmp_path / "second")
    again = load_model(ModelConfig(source=str(tmp_path / "second")), seed=0)
    assert digest(weights(again)) == digest(weights(model))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "second", local_files_only=True)
    with torch.no_grad():
        assert torch.equal(theirs(IDS).logits, model(IDS).logits)


def test_of_kimi_the_text_model_is_loaded_with_the_weights_of_the_whole(tmp_path: Path) -> None:
    save_tiny(tmp_path / "whole", "kimi_k25", seed=0)
    model = load_model(ModelConfig(source=str(tmp_path / "whole")), seed=0)
    assert isinstance(model, DeepseekV3ForCausalLM)
    save_model(model, tmp_path / "text")
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    text = load_file(tmp_path / "text" / "model.safetensors")
    prefix = "language_model."
    assert text.keys() == {name[len(prefix) :] for name in whole if name.startswith(prefix)}
    assert all(torch.equal(text[name], whole[prefix + name]) for name in text)


def test_to_load_and_to_save_a_model_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_model(load_model(ModelConfig(tiny="kimi_k25"), seed=0), tmp_path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_model_is_that_of_its_folder_and_its_seed(tmp_path: Path, kind: TinyKind) -> None:
    save_tiny(tmp_path, kind, seed=5)
    loaded = load_model(ModelConfig(source=str(tmp_path)), seed=0)
    assert digest(weights(load_model(ModelConfig(tiny=kind), seed=5))) == digest(weights(loaded))
    assert digest(weights(load_model(ModelConfig(tiny=kind), seed=6))) != digest(weights(loaded))


def test_a_loaded_model_has_the_type_asked_for_no_dropout_and_trains() -> None:
    model = load_model(ModelConfig(tiny="qwen3_moe", dtype="bfloat16"), seed=0)
    assert {tensor.dtype for tensor in weights(model).values()} == {torch.bfloat16}
    assert not model.training
    model(IDS).logits.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_tokenizer_comes_back_from_a_folder_as_it_was_saved(tmp_path: Path) -> None:
    tiny_tokenizer().save_pretrained(tmp_path)
    tokenizer = load_tokenizer(ModelConfig(source=str(tmp_path)))
    messages = [{"role": "user", "content": "Grüße <tool_call>"}]
    assert tokenizer.apply_chat_template(messages) == tiny_tokenizer().apply_chat_template(messages)
    tiny = load_tokenizer(ModelConfig(tiny="dense"))
    assert tiny.get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_can_be_put_into_another_model_of_the_kind(kind: TinyKind) -> None:
    model, other = (load_model(ModelConfig(tiny=kind), seed=seed) for seed in (0, 1))
    places = [parameter.data_ptr() for parameter in other.parameters()]
    set_weights(other, weights(model))
    assert digest(weights(other)) == digest(weights(model))
    assert [parameter.data_ptr() for parameter in other.parameters()] == places
    with torch.no_grad():
        assert torch.equal(other(IDS).logits, model(IDS).logits)


def test_weights_of_another_kind_are_our_mistake() -> None:
    model, other = (load_model(ModelConfig(tiny=kind), seed=0) for kind in ("dense", "qwen3_moe"))
    with pytest.raises(AssertionError, match=r"model\.layers"):
        set_weights(other, weights(model))


def test_the_digest_tells_one_bit() -> None:
    model = load_model(ModelConfig(tiny="dense", dtype="bfloat16"), seed=0)
    before = digest(weights(model))
    weights(model)["model.norm.weight"].view(torch.int16)[7] ^= 1
    assert digest(weights(model)) != before


def test_a_tied_weight_is_listed_once() -> None:
    assert "lm_head.weight" not in weights(load_model(ModelConfig(tiny="dense"), seed=0))
    assert "lm_head.weight" in weights(load_model(ModelConfig(tiny="qwen3_moe"), seed=0))


@pytest.mark.parametrize("given", [{}, {"source": "model", "tiny": "dense"}])
def test_a_config_names_one_model(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected one of them"):
        ModelConfig(**given)


def assert_refused(source: Path | str, why: str, *, copies: int = 4, **settings: Any) -> None:
    """Check that a model is refused with one line, which names it and says why."""
    config = ModelConfig(source=str(source), **settings)
    with pytest.raises(ValueError, match=rf"^{source}\b[^\n]*: [^\n]*{why}[^\n]*$"):
        load_model(config, seed=0, copies=copies)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert_refused(tmp_path / "model", "no such folder")


def test_a_name_that_the_hub_cannot_have_is_named() -> None:
    assert_refused("no..such/model", "no such folder, and the hub: ")


def test_a_folder_without_a_config_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert_refused(folder, "has no config.json")


def test_a_config_that_nobody_knows_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "made_up"}')
    assert_refused(folder, "made_up")


def test_code_that_comes_with_a_model_is_refused_and_never_run(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "theirs.py").write_text(
        f"open({str(tmp_path / 'was-run')!r}, 'w')\nclass Config: ..."
    )
    config = {"model_type": "made_up", "auto_map": {"AutoConfig": "theirs.Config"}}
    (folder / "config.json").write_text(json.dumps(config))
    assert_refused(folder, "execute")
    assert not (tmp_path / "was-run").exists()


def test_a_model_that_is_not_causal_is_refused(folder: Path) -> None:
    T5Config().save_pretrained(folder)
    assert_refused(folder, "is a t5 model; expected a causal one")


def test_a_model_that_does_not_fit_is_refused_with_both_sizes(folder: Path) -> None:
    assert_refused(folder, r"does not fit: .* GiB; on cpu .* GiB are free", copies=10**9)


def test_quantised_weights_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8"}
    (folder / "config.json").write_text(json.dumps(config))
    assert_refused(folder, "quantised")


def test_a_weight_that_is_not_there_is_named_and_never_made_up(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert_refused(folder, "model.norm.weight is missing or not as in config.json, one of 1")


def test_weights_of_another_shape_than_the_configs_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 96}))
    assert_refused(folder, "mlp.down_proj.weight is missing or not as in config.json, one of 6")


def test_attention_that_is_not_installed_is_refused(folder: Path) -> None:
    assert_refused(folder, "FlashAttention", attention="flash_attention_2")


def test_a_shard_that_is_not_there_is_refused(folder: Path) -> None:
    shutil.move(folder / "model.safetensors", folder / "model-1.safetensors")
    assert_refused(folder, "model.safetensors is not there")


def test_a_file_that_was_cut_off_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert_refused(folder, "incomplete")


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(ValueError, match="has no tokenizer"):
        load_tokenizer(ModelConfig(source=str(folder)))
