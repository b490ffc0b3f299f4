import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from trainer.fit import free_bytes, require_room, weight_files

CPU = torch.device("cpu")


def make_folder(folder: Path) -> Path:
    """Write 1000 weights in two files, 400 of them of the text model."""
    save_file({"text.a": torch.zeros(20, 20)}, folder / "one.safetensors")
    save_file({"eyes.b": torch.zeros(3, 10, 20)}, folder / "two.safetensors")
    places = {"text.a": "one.safetensors", "eyes.b": "two.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    return folder


@pytest.mark.parametrize(("prefix", "count"), [("", "1,000"), ("text.", "400")])
def test_the_weights_that_count_are_those_with_the_prefix_in_all_files(
    tmp_path: Path, prefix: str, count: str
) -> None:
    folder = make_folder(tmp_path)
    require_room(folder, prefix=prefix, dtype=torch.float32, device=CPU, copies=1)
    with pytest.raises(ValueError, match=f"{folder}: does not fit: {count} weights of 2 bytes"):
        require_room(folder, prefix=prefix, dtype=torch.bfloat16, device=CPU, copies=10**12)


def test_what_is_free_is_no_less_than_what_nobody_has_taken() -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert free_bytes(CPU) > 0.5 * free


def test_a_file_that_the_index_names_and_that_is_not_there_is_named(tmp_path: Path) -> None:
    (make_folder(tmp_path) / "two.safetensors").unlink()
    with pytest.raises(ValueError, match=r"two\.safetensors is not there"):
        weight_files(tmp_path)


def test_a_folder_of_pickles_alone_is_refused(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="expected a model's safetensors"):
        weight_files(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x02\0\0\0\0\0\0\0[]", b"\xff" * 20, b"version 1"])
def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path}: its header cannot be read"):
        require_room(tmp_path, prefix="", dtype=torch.float32, device=CPU, copies=1)


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_an_index_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match="expected a weight_map"):
        weight_files(tmp_path)
