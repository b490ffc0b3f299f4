"""Whatever bytes come, decoding ends with pieces and gaps and never with an error."""

import bz2
import gzip
import io
import lzma
import random
import sqlite3
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from pipeline.leaks.budget import Budget
from tests.pipeline.leaks.planted import DATA, SECRET, verdict_on

TIGHT = Budget(file_bytes=2**24, piece_bytes=2**22, free_bytes=2**20)


def zipped(method: int) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        archive.writestr("a.py", SECRET)
        archive.writestr("b.py", SECRET * 2)
    return target.getvalue()


def tarred() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("x" * 300)
        member.size = len(SECRET)
        archive.addfile(member, io.BytesIO(SECRET))
    return target.getvalue()


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE notes (body TEXT)")
    connection.execute("INSERT INTO notes VALUES (?)", (SECRET.decode(),))
    connection.commit()
    return connection.serialize()


def packed_objects() -> bytes:
    """Return a pack of a blob and a delta of it, by its distance."""
    blob = bytes([0x80 | 3 << 4 | len(SECRET) & 15, len(SECRET) >> 4]) + zlib.compress(SECRET)
    # The sizes of both, a copy of 64 bytes, five new ones.
    delta = bytes([0x80 | len(SECRET) & 127, len(SECRET) >> 7, 69, 0x90, 64]) + b"\5hello"
    distance = bytes([0x80 | (len(blob) >> 7) - 1, len(blob) & 127])
    second = bytes([6 << 4 | len(delta)]) + distance + zlib.compress(delta)
    return b"PACK\0\0\0\2\0\0\0\2" + blob + second + bytes(20)


SAMPLES = {
    "stored zip": zipped(zipfile.ZIP_STORED),
    "deflated zip": zipped(zipfile.ZIP_DEFLATED),
    "lzma zip": zipped(zipfile.ZIP_LZMA),
    "tar": tarred(),
    "gzip": gzip.compress(SECRET),
    "bzip2": bz2.compress(SECRET),
    "xz": lzma.compress(SECRET),
    "lzma": lzma.compress(SECRET, lzma.FORMAT_ALONE),
    "zlib": zlib.compress(SECRET),
    "sqlite": database(),
    "pack": packed_objects(),
    "class": (DATA / "Units.class").read_bytes(),
    **{path.stem: path.read_bytes() for path in sorted(DATA.glob("units-*.bin"))},
    "utf-16": SECRET.decode().encode("utf-16"),
    "ar": b"!<arch>\n" + b"a.py/".ljust(48) + b"%-10d`\n" % len(SECRET) + SECRET,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_changed_bytes_are_no_error(name: str) -> None:
    source = random.Random(name)
    for _ in range(150):
        data = bytearray(SAMPLES[name])
        for _ in range(source.choice([1, 1, 2, 8])):
            at = source.randrange(min(len(data), source.choice([40, 400, 10**6])))
            data[at] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
        verdict_on(bytes(data[: source.choice([len(data), source.randrange(len(data))])]), TIGHT)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_whole_before_it_is_changed(name: str) -> None:
    assert verdict_on(SAMPLES[name], TIGHT).gaps == ()


def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for data in SAMPLES.values():
        verdict_on(data, TIGHT)
        verdict_on(data[:-9], TIGHT)
    assert list(tmp_path.iterdir()) == []
