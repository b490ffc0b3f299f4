"""Compressed streams come out whole, in part, or not at all, and always within the budget."""

import bz2
import gzip
import lzma
import random
import zlib
from collections.abc import Callable

import pyarrow as pa
import pytest

from pipeline.leaks.budget import Budget
from tests.pipeline.leaks.planted import SECRET, gaps_of, verdict_on, ways_to_body


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def old_lzma(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": old_lzma,
    "zlib": zlib.compress,
    "zstd": zstd,
}
BY_NAME = pytest.mark.parametrize("name", PACKERS)
SMALL = Budget(free_bytes=2**16, ratio=50)


@BY_NAME
def test_a_compressed_file_is_known_by_its_content(name: str) -> None:
    verdict = verdict_on(PACKERS[name](SECRET))
    assert ways_to_body(verdict) == [(name,)]
    assert verdict.gaps == ()


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "zstd"])
def test_a_second_stream_behind_the_first_is_read_too(name: str) -> None:
    pack = PACKERS[name]
    assert ways_to_body(verdict_on(pack(b"# first\n") + pack(SECRET))) == [(name,)]


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "lzma", "zlib"])
def test_of_a_stream_that_is_cut_off_the_beginning_is_read_and_the_rest_told(name: str) -> None:
    noise = random.Random(0).randbytes(300_000)
    verdict = verdict_on(PACKERS[name](SECRET * 3000 + noise)[:-4000])
    assert (name,) in ways_to_body(verdict)
    assert gaps_of(verdict) == [((name,), "broken")]


def test_a_cut_off_zstd_stream_is_told() -> None:
    assert (("zstd",), "broken") in gaps_of(verdict_on(zstd(SECRET)[:-4]))


@BY_NAME
def test_a_bomb_is_told_and_not_unpacked(name: str) -> None:
    verdict = verdict_on(PACKERS[name](bytes(2**23)), SMALL)
    assert gaps_of(verdict) == [((name,), "ratio")]
    assert verdict.num_bytes < 2**22


def test_a_piece_larger_than_allowed_is_told() -> None:
    lines = b"\n".join(b"%d" % (number * number) for number in range(200_000))
    verdict = verdict_on(gzip.compress(lines), Budget(piece_bytes=2**20))
    assert gaps_of(verdict) == [(("gzip",), "too large")]


def test_a_stream_that_wants_much_memory_is_told() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**29}]
    packed = lzma.compress(SECRET, lzma.FORMAT_XZ, filters=filters)
    assert gaps_of(verdict_on(packed)) == [(("xz",), "too large")]


@pytest.mark.parametrize("beginning", [b"x^2 + 1", b"x\x01", b"BZhello", b"PKZIP"])
def test_a_text_that_begins_like_a_stream_is_a_text(beginning: bytes) -> None:
    verdict = verdict_on(beginning + b"\n" + SECRET)
    assert ways_to_body(verdict) == [()]
    assert verdict.gaps == ()


def test_large_content_is_found_at_its_very_end() -> None:
    filler = b"\n".join(b"%01000d" % number for number in range(17_000))
    assert len(filler) > 2**24
    assert ways_to_body(verdict_on(gzip.compress(filler + b"\n" + SECRET, 1))) == [("gzip",)]
