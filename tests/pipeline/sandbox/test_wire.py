"""Frames, and folders that travel in them."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sandbox import wire
from pipeline.sandbox.protocol import Job, Mount, Sandbox

FRAMES = st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.binary(max_size=300)))


@given(FRAMES, st.lists(st.integers(min_value=1, max_value=50), min_size=1))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    frames: list[tuple[bytes, bytes]], sizes: list[int]
):
    stream = b"".join(wire.frame(kind, payload) for kind, payload in frames)
    decoder, found, at = wire.Decoder(), [], 0
    while at < len(stream):
        size = sizes[at % len(sizes)]
        found += decoder.feed(stream[at : at + size])
        at += size
    assert found == frames


def test_what_is_too_large_for_a_frame_is_none():
    with pytest.raises(wire.WireError, match="bytes in a frame"):
        list(wire.Decoder().feed(b"O\xff\xff\xff\xff"))


def decoded(folder: Path, cache: wire.FileCache) -> list[tuple[bytes, bytes]]:
    return list(wire.Decoder().feed(b"".join(wire.folder_frames(folder, cache))))


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path):
    cache = wire.FileCache()
    for text in (b"one", b"two", b"three"):
        (tmp_path / "file").write_bytes(text)
        assert decoded(tmp_path, cache)[1:] == [(b"B", text)]


def test_a_cache_forgets_what_was_not_asked_for_when_it_is_full(tmp_path: Path):
    cache = wire.FileCache(most_bytes=25)
    for name in "abcd":
        (tmp_path / name).write_bytes(name.encode() * 10)
    decoded(tmp_path, cache)
    assert sum(len(it.data) for it in cache._files.values()) == 20
    assert decoded(tmp_path, cache)[1:] == decoded(tmp_path, wire.FileCache())[1:]


def sent(folder: Path, kept: wire.Kept) -> bytes:
    """Return the content that a server is sent to lay out a folder."""
    frames = wire.Decoder().feed(b"".join(wire.folder_frames(folder, wire.FileCache(), kept)))
    return b"".join(payload for kind, payload in frames if kind == b"B")


def test_a_server_that_stays_is_sent_each_content_once(tmp_path: Path):
    kept = wire.Kept()
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "same").write_bytes(b"one")
    assert sent(tmp_path, kept) == b"one"
    (tmp_path / "b").write_bytes(b"two")
    assert sent(tmp_path, kept) == b"two"
    (tmp_path / "a").write_bytes(b"two")
    assert sent(tmp_path, kept) == b""


def test_a_server_without_room_is_sent_everything_each_time(tmp_path: Path):
    kept = wire.Kept(most_bytes=8)
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode() * 5)
    assert len(sent(tmp_path, kept)) == 15
    assert len(sent(tmp_path, kept)) == 10


def test_a_file_that_changes_while_it_is_sent_is_noticed(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"before")
    frames = wire.folder_frames(tmp_path, wire.FileCache(most_bytes=0), wire.Kept())
    next(frames)
    (tmp_path / "file").write_bytes(b"behind")
    with pytest.raises(OSError, match="changed while it was read"):
        next(frames)


def taker(data: bytes) -> Callable[[int], bytes]:
    left = memoryview(data)

    def take(size: int) -> bytes:
        nonlocal left
        taken, left = left[:size], left[size:]
        return bytes(taken)

    return take


def test_a_folder_becomes_what_the_listing_says(tmp_path: Path):
    (tmp_path / "kept").write_text("as it was")
    (tmp_path / "gone").write_text("removed")
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "file").write_text("removed")
    (tmp_path / "turned").mkdir()
    entries: list[wire.Entry] = [
        (".", "dir", 0o755, 0, 10**18, ""),
        ("kept", "kept", 0o644, 9, 0, ""),
        ("new", "dir", 0o000, 0, 10**18, ""),
        ("new/file", "file", 0o4755, 3, 10**18, ""),
        ("new/link", "link", 0o777, 0, 0, "../kept"),
        ("turned", "file", 0o600, 2, 10**18, ""),
    ]
    wire.take_back(tmp_path, entries, taker(b"abcde"))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "kept", "new", "new/file", "new/link", "turned",
    ]  # fmt: skip
    assert (tmp_path / "kept").read_text() == (tmp_path / "new" / "link").read_text() == "as it was"
    assert (tmp_path / "new" / "file").read_bytes() == b"abc"
    assert (tmp_path / "turned").read_bytes() == b"de"
    assert stat.S_IMODE((tmp_path / "new" / "file").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert (tmp_path / "new" / "file").stat().st_mtime_ns == 10**18


@pytest.mark.parametrize(
    "path",
    [
        "../out",
        "/out",
        "a/../../out",
        "missing/file",
        "",
        "a/./b",
        "link/file",
        "a//b",
        "a",
        "x\0y",
    ],
)
def test_a_listing_reaches_no_place_that_is_not_in_the_folder(tmp_path: Path, path: str):
    folder = tmp_path / "folder"
    (folder / "a").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    entries: list[wire.Entry] = [
        (".", "dir", 0o755, 0, 0, ""),
        ("a", "dir", 0o755, 0, 0, ""),
        ("link", "link", 0o777, 0, 0, "../elsewhere"),
        (path, "file", 0o644, 1, 0, ""),
    ]
    with pytest.raises(wire.WireError, match="in a folder that was listed"):
        wire.take_back(folder, entries, taker(b"x"))
    assert sorted(it.name for it in tmp_path.rglob("*")) == ["a", "elsewhere", "folder", "link"]


@pytest.mark.parametrize(
    ("link", "is_made"),
    [
        ("/etc/passwd", False),
        ("../../etc", False),
        ("../a/file", True),
        ("inner/../../../x", False),
        ("file", True),
    ],
)
def test_links_that_leave_the_folder_are_left_out(tmp_path: Path, link: str, is_made: bool):
    entries: list[wire.Entry] = [
        (".", "dir", 0o755, 0, 0, ""),
        ("a", "dir", 0o755, 0, 0, ""),
        ("a/link", "link", 0o777, 0, 0, link),
    ]
    wire.take_back(tmp_path, entries, taker(b""))
    assert (tmp_path / "a" / "link").is_symlink() == is_made


def test_a_listing_replaces_a_link_instead_of_following_it(tmp_path: Path):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "file").write_text("of the host")
    (folder / "a").symlink_to(outside)
    (folder / "b").symlink_to(outside / "file")
    entries: list[wire.Entry] = [
        (".", "dir", 0o755, 0, 0, ""),
        ("a", "dir", 0o755, 0, 0, ""),
        ("a/file", "file", 0o644, 1, 0, ""),
        ("b", "file", 0o644, 1, 0, ""),
    ]
    wire.take_back(folder, entries, taker(b"xy"))
    assert (outside / "file").read_text() == "of the host"
    assert (folder / "a" / "file").read_text() == "x"
    assert (folder / "b").read_text() == "y"


def test_content_that_ends_too_early_is_no_file(tmp_path: Path):
    entries: list[wire.Entry] = [(".", "dir", 0o755, 0, 0, ""), ("a", "file", 0o644, 5, 0, "")]
    with pytest.raises(wire.WireError, match="bytes more"):
        wire.take_back(tmp_path, entries, taker(b"abc"))


def test_a_folder_is_laid_out_in_a_sandbox_as_it_is(sandbox: Sandbox, tmp_path: Path):
    source = tmp_path / "tree"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "deep" / "run \udcff").write_bytes(bytes(range(256)) * 9000)
    (source / "deep" / "run \udcff").chmod(0o755)
    (source / "none").touch()
    (source / "link").symlink_to("deep/../none")
    os.utime(source / "none", ns=(1, 10**18 + 123))
    sandbox.adopt(source)
    script = (
        "find . -mindepth 1 -type d -printf '%p %y %m %T@\\n'"
        " -o -printf '%p %y %m %T@ %s %l\\n' | sort;"
        " cat 'deep/run '* | sha256sum"
    )
    command = ("/bin/sh", "-c", script)
    variables = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    there = subprocess.run(command, cwd=source, env=variables, capture_output=True, check=True)
    mount = Mount(source=source, target="/work", mode="overlay")
    here = sandbox.run(Job(command=command, mounts=(mount,), workdir="/work"))
    assert here.output == there.stdout


def test_a_writable_folder_is_afterwards_what_the_job_has_made_of_it(
    sandbox: Sandbox, tmp_path: Path
):
    for name in ("kept", "changed", "removed", "touched"):
        (tmp_path / name).write_text("before")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("before")
    sandbox.adopt(tmp_path)
    script = (
        "rm removed; echo after > changed; touch -d @1 changed; mv folder moved; mkdir -p a/b;"
        "ln -s ../changed a/link; echo -n before > touched; touch -d @5 touched; rm kept;"
        "echo -n BEFORE > kept; touch -d @1 kept; chmod 500 a; mkfifo pipe; exit 3"
    )
    mount = Mount(source=tmp_path, target="/work", mode="write")
    finished = sandbox.run(Job(command=("/bin/sh", "-c", script), mounts=(mount,), workdir="/work"))
    assert finished.exit_code == 3
    found = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*")}
    texts = {name: path.read_text() for name, path in found.items() if path.is_file()}
    assert texts == {
        "a/link": "after\n",
        "changed": "after\n",
        "kept": "BEFORE",
        "moved/file": "before",
        "touched": "before",
    }
    assert found["a"].stat().st_mode & 0o500 == 0o500
    assert found["a/b"].is_dir()
    assert found["touched"].stat().st_mtime == 5
    assert found["a/link"].is_symlink()
