"""Bytecode of every interpreter shows its names, constants and texts."""

import json
import marshal
import struct
from pathlib import Path

import pytest

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.piece import Piece
from pipeline.leaks.decode.unfold import unfold
from tests.pipeline.leaks.planted import BUDGET, DATA, SECRET, gaps_of, verdict_on, ways_to_body

FILES = sorted(DATA.glob("units-*.bin"))
HEADER = bytes.fromhex("a70d0d0a") + bytes(12)


def pieces_of(path: Path) -> list[Piece]:
    found = unfold(path.read_bytes(), Meter(BUDGET))
    return [it for it in found if isinstance(it, Piece)]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_each_version_tells_the_same_of_a_function(path: Path) -> None:
    (code,) = (it for it in pieces_of(path) if it.form == "code")
    version = path.stem.partition("-")[2]
    assert code.decoders == (f"pyc {version}",)
    records = {it["qualname"]: it for it in map(json.loads, bytes(code.data).splitlines())}
    found = records["Ruler.measure_furlongs"]
    assert found["name"] == "measure_furlongs"
    assert found["varnames"][:3] == ["self", "distance", "rounding_places"]
    assert "round" in found["names"]
    scaled = records["Ruler.measure_furlongs.<locals>.scaled"]
    assert scaled["varnames"] == ["amount"]
    assert scaled["names"] == ["FACTORS"]
    assert "furlong" in scaled["consts"]
    assert "201.168" in str(records["<module>"]["consts"])


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_docstring_comes_out_as_text(path: Path) -> None:
    texts = [bytes(it.data) for it in pieces_of(path) if it.form == "text"]
    assert any(b"Return how many furlongs" in text for text in texts)


def test_there_is_a_file_of_every_interpreter_that_has_no_other_reader() -> None:
    assert {path.stem.partition("-")[2] for path in FILES} >= {"3.6", "3.8", "3.11", "3.13"}


def test_bytecode_in_an_archive_in_bytecode_is_read() -> None:
    inner = HEADER + marshal.dumps(compile(SECRET, "a.py", "exec", dont_inherit=True))
    outer = HEADER + marshal.dumps(compile(f"DATA = {inner!r}", "b.py", "exec", dont_inherit=True))
    assert ("pyc 3.11:bytes", "pyc 3.11") in ways_to_body(verdict_on(outer))


def test_a_file_that_is_cut_off_is_told() -> None:
    data = HEADER + marshal.dumps(compile(SECRET, "a.py", "exec", dont_inherit=True))
    for size in range(17, len(data) - 1, 7):
        assert gaps_of(verdict_on(data[:size])) == [(("pyc 3.11",), "broken")]


def test_references_to_references_do_not_multiply() -> None:
    """Each of sixty tuples holds the last one twice: more items than could ever be written out."""
    made = bytes([ord(")") | 0x80, 1]) + b"i" + struct.pack("<i", 7)
    for number in range(60):
        reference = b"r" + struct.pack("<i", number)
        made += bytes([ord(")") | 0x80, 2]) + reference + reference
    count = struct.pack("<i", 61)
    verdict = verdict_on(HEADER + b"(" + count + made)
    assert gaps_of(verdict) == [(("pyc 3.11",), "broken")]


@pytest.mark.parametrize("kind", [b"(\xff\xff\xff\x7f", b"s\xff\xff\xff\x7f", b"l\x00\x00\x00\x80"])
def test_a_size_that_is_made_up_costs_nothing(kind: bytes) -> None:
    assert gaps_of(verdict_on(HEADER + kind + bytes(50))) == [(("pyc 3.11",), "broken")]


def test_nesting_without_end_is_told() -> None:
    assert gaps_of(verdict_on(HEADER + b")\x01" * 5000)) == [(("pyc 3.11",), "broken")]
