"""Streams in the midst of other bytes are found."""

import gzip
import io
import lzma
import random
import zipfile
import zlib

import pytest

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.carve import carved_parts
from pipeline.leaks.decode.growing import CHUNK_BYTES
from pipeline.leaks.decode.piece import Inner
from tests.pipeline.leaks.planted import BUDGET, SECRET, verdict_on, ways_to_body

NOISE = random.Random(0).randbytes(3000) + b"\0"


def zipped(data: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.py", data)
    return target.getvalue()


@pytest.mark.parametrize(
    ("label", "packed"),
    [
        *((f"zlib@{len(NOISE)}", zlib.compress(SECRET, level)) for level in (0, 1, 5, 6, 9)),
        (f"gzip@{len(NOISE)}", gzip.compress(SECRET)),
        (f"xz@{len(NOISE)}", lzma.compress(SECRET)),
        ("zip:a.py", zipped(SECRET)),
    ],
)
def test_a_stream_between_other_bytes_is_read(label: str, packed: bytes) -> None:
    verdict = verdict_on(NOISE + packed + NOISE)
    assert (label,) in ways_to_body(verdict)
    assert verdict.gaps == ()


def test_every_stream_is_read() -> None:
    packed = zlib.compress(SECRET)
    ways = ways_to_body(verdict_on(NOISE + packed + NOISE + packed + packed))
    assert len(ways) == 3


def test_more_marks_than_are_held_hide_no_stream() -> None:
    marks = b"x\xda" * 2**16 + b"x"
    for packed in (zlib.compress(SECRET), zipped(SECRET)):
        assert ways_to_body(verdict_on(b"\0" + marks + packed))


def test_a_stream_across_two_windows_is_read() -> None:
    for before in range(4 * CHUNK_BYTES - 2, 4 * CHUNK_BYTES + 1):
        found = carved_parts(bytes(before) + zlib.compress(SECRET), Meter(BUDGET))
        assert list(found) == [Inner(label=f"zlib@{before}", data=SECRET)]


def test_bytes_without_a_stream_give_nothing() -> None:
    noise = random.Random(1).randbytes(2_000_000)
    verdict = verdict_on(b"\0" + noise)
    assert verdict.hits == ()
    assert verdict.gaps == ()
    assert verdict.num_bytes < 2_100_000
