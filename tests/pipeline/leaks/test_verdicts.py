"""A verdict is kept for its content, its Matcher and its Budget; a broken cache is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.leaks.budget import Budget
from pipeline.leaks.decode.piece import Gap
from pipeline.leaks.verdicts import Hit, Verdict, Verdicts

CLEAN = Verdict(hits=(), gaps=(), num_bytes=7)
FULL = Verdict(
    hits=(Hit(decoders=("zip:ä\udcff.py", "json"), keys=bytes(range(16)), excerpt="ab" * 32),),
    gaps=(Gap(decoders=("zip:b",), why="encrypted"),),
    num_bytes=2**40,
)
BUDGET = Budget()


def put(verdicts: Verdicts, key: bytes, verdict: Verdict, *, digest: str = "m") -> None:
    with verdicts.shelf(digest, BUDGET) as shelf:
        shelf.put(key, verdict)


def get(
    verdicts: Verdicts, key: bytes, *, digest: str = "m", budget: Budget = BUDGET
) -> Verdict | None:
    with verdicts.shelf(digest, budget) as shelf:
        return shelf.get(key)


@pytest.mark.parametrize("verdict", [CLEAN, FULL])
def test_what_was_put_is_got_by_the_next_scan(tmp_path: Path, verdict: Verdict) -> None:
    put(Verdicts(tmp_path), b"1" * 32, verdict)
    assert get(Verdicts(tmp_path), b"1" * 32) == verdict
    assert get(Verdicts(tmp_path), b"2" * 32) is None


def test_another_matcher_or_budget_has_verdicts_of_its_own(tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path)
    put(verdicts, b"1", CLEAN)
    assert get(verdicts, b"1", digest="other") is None
    assert get(verdicts, b"1", budget=Budget(depth=3)) is None


def test_without_a_folder_a_scan_keeps_its_own_verdicts_alone() -> None:
    verdicts = Verdicts()
    with verdicts.shelf("m", BUDGET) as shelf:
        for number in range(2000):
            shelf.put(b"%d" % number, CLEAN)
        assert shelf.get(b"3") == CLEAN
    assert get(verdicts, b"3") is None


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_broken_file_is_thrown_away(tmp_path: Path, is_cut: bool) -> None:
    verdicts = Verdicts(tmp_path)
    put(verdicts, b"1", FULL)
    (path,) = tmp_path.glob("*.sqlite")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] if is_cut else b"?" * 999)
    assert get(verdicts, b"1") is None
    put(verdicts, b"1", FULL)
    assert get(verdicts, b"1") == FULL


def test_a_torn_verdict_is_none(tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path)
    put(verdicts, b"1", FULL)
    (path,) = tmp_path.glob("*.sqlite")
    data = path.read_bytes()
    at = data.index(b"\x78\x9c") + 20
    path.write_bytes(data[:at] + b"????" + data[at + 4 :])
    assert get(verdicts, b"1") is None


WRITER = """
import sys
from pathlib import Path
from pipeline.leaks.budget import Budget
from pipeline.leaks.verdicts import Verdict, Verdicts

folder, name = sys.argv[1:]
with Verdicts(Path(folder)).shelf("m", Budget()) as shelf:
    for number in range(2500):
        shelf.put(f"{name}-{number}".encode(), Verdict(hits=(), gaps=(), num_bytes=number))
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), name] for name in "abc"]
    root = Path(__file__).parents[3]
    running = [subprocess.Popen(command, cwd=root) for command in commands]
    assert [process.wait() for process in running] == [0, 0, 0]
    for name in "abc":
        found = get(Verdicts(tmp_path), f"{name}-2499".encode())
        assert found is not None
        assert found.num_bytes == 2499
