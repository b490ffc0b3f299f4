"""The content of any file is read, or it is said why not."""

import os
from pathlib import Path

import pytest

from pipeline.leaks.budget import Budget, Meter
from pipeline.leaks.reading import read_file

BUDGET = Budget(file_bytes=2**25)


def read(path: Path, budget: Budget = BUDGET) -> tuple[bytes, str | None]:
    data, why = read_file(str(path), Meter(budget))
    return data[:], why


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**23 + 1])
def test_files_of_all_sizes_are_read_whole(tmp_path: Path, size: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "a").write_bytes(content[:size])
    assert read(tmp_path / "a") == (content[:size], None)


def test_a_sparse_file_of_a_terabyte_is_read_without_its_holes(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"first")
        file.seek(2**39)
        file.write(b"middle")
        file.truncate(2**40)
    content, why = read(tmp_path / "a")
    assert why is None
    assert b"first" in content
    assert b"middle" in content
    assert len(content) < 2**20


def test_a_sparse_file_that_is_all_hole_is_empty(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)
    assert read(tmp_path / "a") == (b"", None)


def test_of_a_file_larger_than_allowed_the_beginning_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (2**23 + 5))
    content, why = read(tmp_path / "a", Budget(file_bytes=2**20))
    assert (len(content), why) == (2**20, "too large")


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    assert read(tmp_path / "gone") == (b"", "unreadable")
    (tmp_path / "link").symlink_to("gone")
    assert read(tmp_path / "link") == (b"", "unreadable")


def test_a_pipe_that_took_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    assert read(tmp_path / "a") == (b"", "not a file")


def test_a_file_whose_size_the_system_does_not_tell_is_read() -> None:
    content, why = read(Path("/proc/self/status"))
    assert why is None
    assert content.startswith(b"Name:")
    assert b"voluntary_ctxt_switches" in content
