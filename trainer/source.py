"""Find the folder of a model, here or on the hub, and read its config."""

import re
from pathlib import Path
from typing import Any, cast

from huggingface_hub import snapshot_download
from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
# What a model needs of a hub repository: no pickles, no code.
HUB_FILES = ["*.json", "*.jinja", "*.model", "*.safetensors", "*.tiktoken", "*.txt"]
# Code that comes with a model never runs.
ON_DISK: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
# Where the text model's weights are in a checkpoint that has eyes as well.
TEXT_PREFIX = {"kimi_k25": "language_model."}


def find_folder(source: str) -> Path:
    """Return the folder of a model; what only the hub has is downloaded.

    Raises:
        ValueError: there is no such folder, and nothing to be had from the hub by that name.
    """
    if Path(source).is_dir():
        return Path(source)
    if not HUB_NAME.fullmatch(source):
        raise ValueError(f"{source}: no such folder; expected a model's, or a name on the hub")
    try:
        return Path(snapshot_download(source, allow_patterns=HUB_FILES))
    # No such repository, no leave to read it, no network: all are one of these.
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{source}: no such folder, and the hub: {first_sentence(error)}"
        ) from error


def read_config(folder: Path) -> PreTrainedConfig:
    """Read the config of a causal model in full precision.

    Raises:
        ValueError: there is none, or it is of another kind of model.
    """
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder}: has no config.json; expected the folder of a model")
    try:
        config = AutoConfig.from_pretrained(folder, **ON_DISK)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder}/config.json: {first_sentence(error)}") from error
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING and config.model_type not in TEXT_PREFIX:
        raise ValueError(f"{folder}: is a {config.model_type} model; expected a causal one")
    for part in (config, config.get_text_config()):
        if getattr(part, "quantization_config", None):
            raise ValueError(
                f"{folder}: its weights are quantised; expected them in full precision"
            )
    return cast("PreTrainedConfig", config)


def first_sentence(error: Exception) -> str:
    """Return the first sentence of what an error says; the hub and transformers say much."""
    return re.split(r"\n|\. ", str(error).strip())[0]
