"""Zip archives are read member by member, whatever their directory says."""

import io
import zipfile

import pytest

from pipeline.leaks.budget import Budget
from tests.pipeline.leaks.planted import SECRET, gaps_of, verdict_on, ways_to_body


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


class Unseekable(io.BytesIO):
    """A target of which sizes can be written only after the content."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError("no seeking")

    def tell(self) -> int:
        raise OSError("no telling")


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_each_method_of_compression_is_read(method: int) -> None:
    verdict = verdict_on(zipped(("a.txt", b"x" * 100), ("pkg/a.py", SECRET), method=method))
    assert ways_to_body(verdict) == [("zip:pkg/a.py",)]
    assert verdict.gaps == ()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_whose_size_comes_later_is_read(method: int) -> None:
    target = Unseekable()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("a.py", SECRET)
        archive.writestr("b.py", b"pass\n" * 9)
    assert ways_to_body(verdict_on(target.getvalue())) == [("zip:a.py",)]


def test_an_archive_in_an_archive_is_read() -> None:
    inner = zipped(("pkg/a.py", SECRET))
    assert ways_to_body(verdict_on(zipped(("lib.whl", inner)))) == [("zip:lib.whl", "zip:pkg/a.py")]


def test_a_member_that_the_directory_does_not_list_is_read() -> None:
    old = zipped(("a.py", SECRET))
    new = old[: old.index(b"PK\x01\x02")] + zipped(("b.py", b"pass\n"))
    assert zipfile.ZipFile(io.BytesIO(new)).namelist() == ["b.py"]
    assert ways_to_body(verdict_on(new)) == [("zip:a.py",)]


def test_an_archive_behind_a_program_is_read() -> None:
    program = b"#!/usr/bin/env python3\n" + zipped(("__main__.py", SECRET))
    assert ways_to_body(verdict_on(program)) == [("zip:__main__.py",)]


def test_an_archive_without_its_end_is_read_and_the_loss_told() -> None:
    noise = bytes(range(256)) * 40
    archive = zipped(("a.py", SECRET), ("b.bin", noise), method=zipfile.ZIP_STORED)
    deflated = zipped(("a.py", SECRET), ("b.txt", str(list(range(9999))).encode()))
    assert ways_to_body(verdict_on(archive[:6000])) == [("zip:a.py",)]
    verdict = verdict_on(deflated[:6000])
    assert ways_to_body(verdict) == [("zip:a.py",)]
    assert gaps_of(verdict) == [(("zip:b.txt",), "broken")]


def test_an_encrypted_member_is_told_and_the_others_are_read() -> None:
    archive = bytearray(zipped(("secret.py", b"?" * 50), ("a.py", SECRET)))
    archive[6] |= 1
    verdict = verdict_on(bytes(archive))
    assert gaps_of(verdict) == [(("zip:secret.py",), "encrypted")]
    assert ways_to_body(verdict) == [("zip:a.py",)]


def test_archives_in_archives_end_at_the_depth_of_the_budget() -> None:
    data = SECRET
    for number in range(30):
        data = zipped((f"{number}.zip", data))
    verdict = verdict_on(data, Budget(depth=5))
    assert [why for _, why in gaps_of(verdict)] == ["too deep"]
    assert len(gaps_of(verdict)[0][0]) == 5


def test_an_archive_of_many_bombs_ends_within_the_budget() -> None:
    archive = zipped(*((f"{number}.txt", bytes(2**20)) for number in range(20)))
    verdict = verdict_on(archive, Budget(file_bytes=2**22))
    assert gaps_of(verdict) == [((), "too large")]
    assert verdict.num_bytes < 2**23
