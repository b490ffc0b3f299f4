from pathlib import Path

import pytest
import torch
from torch import Tensor

from trainer.transfer import FILE, digest, read_weights, write_weights


def some() -> dict[str, Tensor]:
    return {"b": torch.arange(6.0).view(2, 3).T, "a": torch.ones(3, dtype=torch.bfloat16)}


def test_weights_arrive_as_they_were_sent(tmp_path: Path) -> None:
    sha256 = write_weights(tmp_path / "version-1", some())
    arrived = read_weights(tmp_path / "version-1", expected=sha256)
    torch.testing.assert_close(arrived, some(), rtol=0, atol=0)
    assert digest(arrived) == digest(some()) == sha256
    assert [it.name for it in tmp_path.iterdir()] == ["version-1"]


def test_weights_are_written_over_what_is_left_of_a_broken_run(tmp_path: Path) -> None:
    for name in ("version-1", "version-1.unfinished"):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_bytes(b"half")
    sha256 = write_weights(tmp_path / "version-1", some())
    assert read_weights(tmp_path / "version-1", expected=sha256).keys() == some().keys()


@pytest.mark.parametrize(
    "other",
    [
        {"a": torch.ones(3)},
        {"a": torch.ones(3, 1, dtype=torch.bfloat16)},
        {"a": -torch.ones(3, dtype=torch.bfloat16)},
        {"c": torch.ones(3, dtype=torch.bfloat16)},
        {},
    ],
    ids=["type", "shape", "bits", "name", "number"],
)
def test_the_digest_tells_weights_apart(other: dict[str, Tensor]) -> None:
    assert digest({"a": torch.ones(3, dtype=torch.bfloat16)}) != digest(other)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    sha256 = write_weights(tmp_path / "v", some())
    path = tmp_path / "v" / FILE
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"has digest .*, expected {sha256}"):
        read_weights(tmp_path / "v", expected=sha256)


@pytest.mark.parametrize("data", [None, b"", b"no safetensors"])
def test_weights_that_cannot_be_read_are_named(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / FILE).write_bytes(data)
    with pytest.raises(ValueError, match=f"{tmp_path / FILE}: no weights can be read"):
        read_weights(tmp_path, expected="")
