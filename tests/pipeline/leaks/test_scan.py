"""A scan finds keys wherever they are, says what it did not read, and ends."""

import json
import marshal
import os
import subprocess
import sys
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from pipeline.leaks.budget import Budget
from pipeline.leaks.match import Form
from pipeline.leaks.scan import Scanned, scan_files, scan_roots
from pipeline.leaks.verdicts import Verdicts
from pipeline.leaks.walk import Root
from tests.pipeline.leaks.planted import BUDGET, KEYS, MATCHER, NOTHING_KEPT, SECRET, LineMatcher


class Counting(LineMatcher):
    """Counts the pieces that it is shown."""

    def __init__(self) -> None:
        self.num_pieces = 0

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        self.num_pieces += 1
        return super().match(data, form)


def scan(
    folder: Path,
    *,
    matcher: LineMatcher = MATCHER,
    verdicts: Verdicts = NOTHING_KEPT,
    budget: Budget = BUDGET,
) -> Scanned:
    roots = [Root(folder=folder, target="/work")]
    return scan_roots(roots, matcher=matcher, verdicts=verdicts, budget=budget)


def test_places_are_told_with_their_path_and_keys(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n" + SECRET)
    (tmp_path / "b.py").write_bytes(b"x = 1\n")
    scanned = scan(tmp_path)
    (place,) = scanned.places
    assert (place.path, place.decoders, place.found) == ("/work/a.py", (), KEYS)
    assert scanned.unread == ()


def test_files_and_bytes_are_counted_with_what_was_decoded(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    packed = zlib.compress(b"y = 2\n" * 100)
    (tmp_path / "b.z").write_bytes(packed)
    scanned = scan(tmp_path)
    assert (scanned.num_files, scanned.num_bytes) == (2, 606 + len(packed))


def test_files_in_memory_are_scanned_alike(tmp_path: Path) -> None:
    files = {"/work/a.py": SECRET, "/work/b.z": zlib.compress(SECRET), "/work/c": b""}
    for path, content in files.items():
        (tmp_path / Path(path).name).write_bytes(content)
    found = scan_files(files, matcher=MATCHER, verdicts=NOTHING_KEPT, budget=BUDGET)
    assert found == scan(tmp_path)
    assert [it.path for it in found.places] == ["/work/a.py", "/work/b.z"]


def test_what_was_scanned_once_is_not_scanned_again(tmp_path: Path) -> None:
    tree, kept = tmp_path / "tree", Verdicts(tmp_path / "kept")
    tree.mkdir()
    (tree / "a.py").write_bytes(SECRET)
    (tree / "copy.py").write_bytes(SECRET)
    (tree / "b.z").write_bytes(zlib.compress(SECRET))
    first, second = Counting(), Counting()
    scanned = scan(tree, matcher=first, verdicts=kept)
    assert first.num_pieces == 4
    assert scan(tree, matcher=second, verdicts=kept) == scanned
    assert second.num_pieces == 0
    (tree / "a.py").write_bytes(SECRET + b"\n")
    assert scan(tree, matcher=second, verdicts=kept) != scanned
    assert second.num_pieces == 2


def test_a_verdict_that_time_cut_short_is_not_kept(tmp_path: Path) -> None:
    tree, kept = tmp_path / "tree", Verdicts(tmp_path / "kept")
    tree.mkdir()
    (tree / "b.z").write_bytes(zlib.compress(SECRET))
    hasty = scan(tree, verdicts=kept, budget=Budget(file_s=0))
    assert [it.why for it in hasty.unread] == ["time"]
    assert [it.why for it in scan(tree, verdicts=kept, budget=Budget(file_s=0)).unread] == ["time"]


def test_a_scan_that_runs_out_of_anything_says_so(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.txt").write_bytes(bytes(1000))
    for budget, why in (
        (Budget(num_files=20), "too many files"),
        (Budget(total_bytes=9000), "too large"),
        (Budget(total_s=0), "time"),
    ):
        scanned = scan(tmp_path, budget=budget)
        assert [it.why for it in scanned.unread] == [why]
        assert scanned.num_files < 50


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (unread,) = scan(tmp_path).unread
    assert (unread.path, unread.why) == ("/work/pipe", "not a file")


class Reading(LineMatcher):
    """Reads code as matchers do, and keeps the names of what it was shown."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        if form == "code":
            self.names += [json.loads(line)["name"] for line in data.splitlines()]
        return frozenset()


def test_code_whose_constants_are_longer_than_a_window_is_read_whole(tmp_path: Path) -> None:
    tables = (f"def f{number}(): return {'x' * size!r}" for number, size in enumerate(SIZES))
    code = compile("\n".join(tables), "a.py", "exec")
    (tmp_path / "a.pyc").write_bytes(MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    matcher = Reading()
    assert scan(tmp_path, matcher=matcher).unread == ()
    # Each code object once: the module, then its functions.
    assert matcher.names == ["<module>", *(f"f{number}" for number in range(len(SIZES)))]


# Of constants: a window is 2 MiB.
SIZES = (1000, 1_500_000, 1_500_000, 3_000_000, 10)


def test_a_key_across_two_windows_of_a_large_file_is_found(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.write(bytes(2**23 - 200) + SECRET + b"\0" * 2**23)
    (place,) = scan(tmp_path).places
    assert len(place.found) >= len(KEYS) - 1


HUNGRY = """
import resource, sys
from pathlib import Path
from pipeline.leaks.scan import scan_roots
from pipeline.leaks.walk import Root
from tests.pipeline.leaks.planted import BUDGET, MATCHER, NOTHING_KEPT

root = Root(folder=Path(sys.argv[1]), target="/work")
scanned = scan_roots([root], matcher=MATCHER, verdicts=NOTHING_KEPT, budget=BUDGET)
print(scanned.num_files, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kib(folder: Path) -> int:
    command = [sys.executable, "-c", HUNGRY, str(folder)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[1])


def test_memory_does_not_grow_with_the_size_of_a_file(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    for folder, num_bytes in ((small, 2**24), (large, 2**27)):
        folder.mkdir()
        with (folder / "a").open("wb") as file:
            for _ in range(num_bytes // 2**20):
                file.write(os.urandom(2**12) + b"x" * (2**20 - 2**12))
    assert peak_kib(large) < peak_kib(small) + 64 * 1024


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    for folder, count in ((few, 10), (many, 8_000)):
        folder.mkdir()
        for number in range(count):
            (folder / str(number)).write_bytes(b"%d\n" % number)
    assert peak_kib(many) < peak_kib(few) + 32 * 1024
