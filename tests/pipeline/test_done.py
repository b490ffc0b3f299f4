import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.done import DoneStore

PUT_MANY = """
import sys
from pathlib import Path
from pipeline.done import DoneStore
store = DoneStore(Path(sys.argv[1]))
for turn in range(100):
    store.put("shared", {"writer": sys.argv[2], "text": sys.argv[2] * 5000})
    store.put(f"own-{sys.argv[2]}-{turn}", {"turn": turn})
    assert store.get("shared")["text"] in {"a" * 5000, "b" * 5000}
"""

# The kernel refuses the write half way, as a full disk does.
PUT_TOO_MUCH = """
import resource, sys
from pathlib import Path
from pipeline.done import DoneStore
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
DoneStore(Path(sys.argv[1])).put("key", {"text": "x" * 5000})
"""

# A tmpfs of one page, mounted for this process alone.
FILL_DISK = "mount -t tmpfs -o size=64k none {0} && {1} -c '{2}' {0}; ls -A {0}"
PUT_UNTIL_FULL = """
import errno, sys
from pathlib import Path
from pipeline.done import DoneStore
store = DoneStore(Path(sys.argv[1]))
store.put("key", {"text": "old"})
try:
    store.put("key", {"text": "x" * 100_000})
except OSError as error:
    assert error.errno == errno.ENOSPC
    assert store.get("key") == {"text": "old"}
    print("full")
"""


def test_a_record_comes_back_whatever_its_text(tmp_path: Path) -> None:
    store = DoneStore(tmp_path / "done")
    value = {"b": ["x", 1, 2.5, None, True], "a": {"text": "ü\n\u2028\0\udc80"}}
    store.put("abc", value)
    assert store.get("abc") == value
    assert list(store.keys()) == ["abc"]


def test_equal_records_are_equal_bytes(tmp_path: Path) -> None:
    one, two = DoneStore(tmp_path / "one"), DoneStore(tmp_path / "two")
    one.put("k", {"a": 1, "b": 2})
    two.put("k", {"b": 2, "a": 1})
    assert (tmp_path / "one/k.json").read_bytes() == (tmp_path / "two/k.json").read_bytes()


def test_a_store_that_nobody_wrote_to_is_empty(tmp_path: Path) -> None:
    store = DoneStore(tmp_path / "done")
    store.sweep()
    assert store.get("abc") is None
    assert list(store.keys()) == []


@pytest.mark.parametrize("torn", [b"", b'{"a": 1', b"\0" * 20, b"[1]", b'{"a": "\xff"}'])
def test_a_torn_record_is_no_record_until_it_is_put_again(tmp_path: Path, torn: bytes) -> None:
    store = DoneStore(tmp_path)
    (tmp_path / "k.json").write_bytes(torn)
    assert store.get("k") is None
    assert list(store.keys()) == []
    store.put("k", {"a": 1})
    assert store.get("k") == {"a": 1}


@pytest.mark.parametrize("key", ["", "../k", "a/b", ".hidden", "a\n", "x" * 300])
def test_a_key_that_is_no_plain_name_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="done-record key"):
        DoneStore(tmp_path).get(key)


def test_two_processes_put_side_by_side_and_no_reader_sees_half(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PUT_MANY, str(tmp_path)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    store = DoneStore(tmp_path)
    assert len(list(store.keys())) == 201
    assert store.get("shared") in [{"writer": n, "text": n * 5000} for n in "ab"]
    assert len(list(tmp_path.iterdir())) == 201


def test_a_write_that_fails_half_way_leaves_the_old_record_and_no_rest(tmp_path: Path) -> None:
    store = DoneStore(tmp_path)
    store.put("key", {"text": "old"})
    command = [sys.executable, "-c", PUT_TOO_MUCH, str(tmp_path)]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OSError: [Errno 27] File too large" in failed.stderr
    assert store.get("key") == {"text": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["key.json"]


def test_a_writer_that_was_killed_is_swept_up(tmp_path: Path) -> None:
    store = DoneStore(tmp_path)
    store.put("key", {})
    (tmp_path / ".key.json.0123.tmp").write_bytes(b'{"half')
    assert list(store.keys()) == ["key"]
    store.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["key.json"]


def can_mount() -> bool:
    probe = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_a_full_disk_is_an_error_that_leaves_the_old_record(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("no user namespaces here, so no small disk to fill")
    script = FILL_DISK.format(tmp_path, sys.executable, PUT_UNTIL_FULL)
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["full", "key.json"]
