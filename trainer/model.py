"""Load a causal model and save it, as folders of safetensors in transformers' layout."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, cast

import torch
from pydantic import model_validator
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from trainer.fit import require_room
from trainer.probe import require_packable
from trainer.settings import Settings
from trainer.source import ON_DISK, TEXT_PREFIX, find_folder, first_sentence, read_config
from trainer.tiny import TinyKind, save_tiny, tiny_tokenizer

# Files one of which every tokenizer has.
VOCABULARIES = ("tokenizer.json", "*.model", "vocab.*", "*.tiktoken")


class ModelConfig(Settings):
    """Which model is trained, and how it computes."""

    # Folder of a model, or its name on the hub.
    source: str = ""
    # Instead of a source: a tiny model, initialised at random.
    tiny: TinyKind | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"
    attention: Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3"] = "sdpa"
    # How a mixture of experts multiplies; other models have no use for it.
    # `batched_mm` is slow, and takes each token for itself: no bit depends on other tokens.
    experts: Literal["grouped_mm", "batched_mm", "eager"] = "grouped_mm"
    # `auto` is the current GPU where there is one.
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @property
    def origin(self) -> str:
        """What the model is called: its source, or the kind of the tiny one."""
        return self.source or f"tiny {self.tiny}"

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        if bool(self.source) == bool(self.tiny):
            raise ValueError(f"source {self.source!r}, tiny {self.tiny!r}; expected one of them")
        return self


def load_model(config: ModelConfig, *, seed: int, copies: int = 4) -> PreTrainedModel:
    """Load the model that the config names, ready to train; of `kimi_k25` the text model.

    `copies` is how many numbers the caller is going to hold for each weight: with gradients and
    the two moments of an optimizer 4, one more for a teacher, 1 to sample alone. The seed is that
    of a tiny model's weights.

    Raises:
        ValueError: there is no such model, it is not causal, is quantised, lacks weights, does
            not fit into memory, or cannot be trained packed. One line says which.
    """
    if config.tiny is None:
        return _load(find_folder(config.source), config=config, copies=copies)
    with tempfile.TemporaryDirectory() as folder:
        with _quietly():
            save_tiny(Path(folder), config.tiny, seed=seed)
        return _load(Path(folder), config=config, copies=copies)


def load_tokenizer(config: ModelConfig) -> PreTrainedTokenizerBase:
    """Load the tokenizer that belongs to the model.

    Raises:
        ValueError: there is none, or no such model.
    """
    if config.tiny is not None:
        return tiny_tokenizer()
    folder = find_folder(config.source)
    # Transformers makes up an empty one.
    if not any(path for pattern in VOCABULARIES for path in folder.glob(pattern)):
        raise ValueError(f"{folder}: has no tokenizer; expected a tokenizer.json")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **ON_DISK)
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder}: has no tokenizer: {first_sentence(error)}") from error
    return cast("PreTrainedTokenizerBase", tokenizer)


def save_model(model: PreTrainedModel, folder: Path) -> None:
    """Write config and weights; `load_model` and transformers load them again."""
    with _quietly():
        model.save_pretrained(folder)


def save_whole(model: PreTrainedModel, whole: Mapping[str, Tensor], folder: Path) -> None:
    """Write a model whose own weights may be parts, with the whole ones."""
    if not any(isinstance(it, DTensor) for it in weights(model).values()):
        save_model(model, folder)
        return
    with torch.device("meta"):
        bare = type(model)(model.config)
    bare.load_state_dict(dict(whole), strict=False, assign=True)
    bare.tie_weights()
    save_model(bare, folder)


def weights(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the model's own tensors by name, not copies; what is tied has one name."""
    tied = model.all_tied_weights_keys
    return {name: tensor for name, tensor in model.state_dict().items() if name not in tied}


def set_weights(model: PreTrainedModel, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a model of the same kind; the model's own stay where they are."""
    own = weights(model)
    assert own.keys() == tensors.keys(), sorted(own.keys() ^ tensors.keys())[:3]
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


def _load(folder: Path, *, config: ModelConfig, copies: int) -> PreTrainedModel:
    whole = read_config(folder)
    prefix = TEXT_PREFIX.get(whole.model_type, "")
    dtype, device = getattr(torch, config.dtype), _device(config)
    require_room(folder, prefix=prefix, dtype=dtype, device=device, copies=copies)
    with _quietly():
        model = _read_weights(folder, config=config, whole=whole, prefix=prefix)
    cast("nn.Module", model).to(device)
    # Others have no experts, and grouped is what those that have some are loaded with.
    if config.experts != "grouped_mm":
        model.set_experts_implementation(config.experts)
    require_packable(model, name=str(folder))
    return model


def _read_weights(
    folder: Path, *, config: ModelConfig, whole: PreTrainedConfig, prefix: str
) -> PreTrainedModel:
    """Load the weights whose names begin with the prefix, under the rest of their names."""
    try:
        loaded = AutoModelForCausalLM.from_pretrained(
            folder,
            config=whole.get_text_config() if prefix else whole,
            key_mapping={f"^{re.escape(prefix)}": ""} if prefix else None,
            dtype=config.dtype,
            attn_implementation=config.attention,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **ON_DISK,
        )
    # Attention that is not installed or that the model lacks, a file that was cut off.
    except (ImportError, ValueError, SafetensorError) as error:
        raise ValueError(f"{folder}: {first_sentence(error)}") from error
    model, info = cast("tuple[PreTrainedModel, dict[str, set[Any]]]", loaded)
    # Transformers has made these up.
    if bad := sorted({*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}):
        raise ValueError(
            f"{folder}: {bad[0]} is missing or not as in config.json, one of {len(bad)}"
        )
    # Else transformers would put the prefix back when it saves.
    model.__dict__.pop("_weight_conversions", None)
    return model


def _device(config: ModelConfig) -> torch.device:
    if config.device == "cpu" or (config.device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ValueError("device cuda: there is no GPU here; expected cpu or auto")
    return torch.device("cuda", torch.cuda.current_device())


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep transformers from drawing bars and listing weights that are not wanted."""
    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()
