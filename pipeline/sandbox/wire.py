"""Speak with `inside/serve.py`: frames, and the folders that travel in them."""

import hashlib
import itertools
import json
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from pipeline.sandbox import tree
from pipeline.sandbox.protocol import SandboxBrokenError

CHUNK_BYTES = 2**20
_HEAD_BYTES = 5
# Far above what the other end sends: more is no frame.
_MOST_BYTES = 2**28
# What a listing says of one path: kind, mode, size, mtime_ns; target of a link, or name of a blob.
Entry = tuple[str, str, int, int, int, str]
# Files up to this size are blobs, which a server that stays is sent once.
_BLOB_BYTES = 2**18
# What one server keeps of them at most, of the memory that is its own.
_KEPT_BYTES = 2**24


class WireError(SandboxBrokenError):
    """The other end does not keep to the protocol; the message says how."""


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return kind + len(payload).to_bytes(4, "big") + payload


def json_frame(kind: bytes, message: object) -> bytes:
    """Return one frame with a message."""
    return frame(kind, json.dumps(message).encode("ascii"))


class Decoder:
    """Frames out of what comes in pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield kind and payload of each frame that is now complete.

        Raises:
            WireError: this is no frame.
        """
        self._data += piece
        while len(self._data) >= _HEAD_BYTES:
            size = int.from_bytes(self._data[1:_HEAD_BYTES], "big")
            if size > _MOST_BYTES:
                raise WireError(f"expected at most {_MOST_BYTES} bytes in a frame, got {size}")
            end = _HEAD_BYTES + size
            if len(self._data) < end:
                return
            kind, payload = bytes(self._data[:1]), bytes(self._data[_HEAD_BYTES:end])
            del self._data[:end]
            yield kind, payload


class FileCache:
    """Contents of files that were read before, by what changes with them; any thread may use it."""

    def __init__(self, most_bytes: int = 2**28) -> None:
        self._room = most_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[tuple[int, ...], Content] = OrderedDict()

    def read(self, path: str, found: os.stat_result) -> "Content":
        """Return what is in a file, which `found` was just told of."""
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key]
        content = Content.of(Path(path).read_bytes())
        with self._lock:
            if key not in self._files:
                self._files[key] = content
                self._room -= len(content.data)
            while self._room < 0:
                self._room += len(self._files.popitem(last=False)[1].data)
        return content


@dataclass(frozen=True, slots=True)
class Content:
    """What is in a file."""

    data: bytes
    # What a server knows it by; empty when it is too large to be kept.
    blob: str

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Name the data."""
        is_small = len(data) <= _BLOB_BYTES
        return cls(data, hashlib.sha256(data).hexdigest() if is_small else "")


class Kept:
    """What a server that stays has kept of what it was sent."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._room = most_bytes
        self._blobs: set[str] = set()

    def offer(self, content: Content) -> tuple[str, bool]:
        """Return the blob that a listing names for a content, and whether that has to be sent.

        The server keeps what it is sent with a name.
        """
        if content.blob in self._blobs:
            return content.blob, False
        if not content.blob or len(content.data) > self._room:
            return "", True
        self._room -= len(content.data)
        self._blobs.add(content.blob)
        return content.blob, True


def folder_frames(folder: Path, cache: FileCache, kept: Kept | None = None) -> Iterator[bytes]:
    """Yield the frames that lay out a folder: its listing, the content of its files.

    Args:
        folder: what to lay out.
        cache: of the files that travel.
        kept: by a server that stays; one that does not is sent everything.

    Raises:
        OSError: it cannot be read, or changes meanwhile.
    """
    entries: list[Entry] = []
    files: list[tuple[str, os.stat_result, str]] = []
    for path, name, found in _everything(folder):
        blob, is_sent = "", stat.S_ISREG(found.st_mode)
        if is_sent and kept is not None and found.st_size <= _BLOB_BYTES:
            blob, is_sent = kept.offer(_content(path, found, cache))
        entry = _entry(path, name, found, blob=blob)
        if entry is not None:
            entries.append(entry)
        if is_sent:
            files.append((path, found, blob))
    yield json_frame(b"F", entries)
    contents = (_content(path, found, cache, blob=blob).data for path, found, blob in files)
    for chunk in _chunks(contents):
        yield frame(b"B", chunk)


def _everything(folder: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield path, relative path and status of a folder and all in it, folders first."""
    start = len(str(folder)) + 1
    yield str(folder), ".", folder.stat()
    for found in tree.entries(folder):
        yield found.path, found.path[start:], found.stat(follow_symlinks=False)


def _entry(path: str, name: str, found: os.stat_result, *, blob: str) -> Entry | None:
    """Return the line of a listing; nothing for a device, a socket or a pipe."""
    mode, mtime_ns = stat.S_IMODE(found.st_mode), found.st_mtime_ns
    if stat.S_ISDIR(found.st_mode):
        return name, "dir", mode, 0, mtime_ns, ""
    if stat.S_ISLNK(found.st_mode):
        return name, "link", mode, 0, mtime_ns, str(Path(path).readlink())
    if stat.S_ISREG(found.st_mode):
        return name, "file", mode, found.st_size, mtime_ns, blob
    return None


def _content(path: str, found: os.stat_result, cache: FileCache, *, blob: str = "") -> Content:
    content = cache.read(path, found)
    if len(content.data) != found.st_size or blob not in {"", content.blob}:
        raise OSError(f"{path}: changed while it was read")
    return content


def _chunks(contents: Iterable[bytes]) -> Iterator[bytes]:
    """Join small contents, and cut large ones, to chunks that are neither."""
    waiting, size = [], 0
    for content in contents:
        waiting.append(content)
        size += len(content)
        if size >= CHUNK_BYTES:
            yield from cut(b"".join(waiting))
            waiting, size = [], 0
    if size:
        yield from cut(b"".join(waiting))


def cut(data: bytes) -> Iterator[bytes]:
    """Yield data in pieces that fit a frame."""
    for at in range(0, len(data), CHUNK_BYTES):
        yield data[at : at + CHUNK_BYTES]


def take_back(folder: Path, entries: Iterable[Entry], read: Callable[[int], bytes]) -> None:
    """Make a folder of ours what a job has made of its copy.

    Nothing outside of the folder is touched, whatever the listing says. Links that leave the
    folder are left out.

    Args:
        folder: it is as it was sent, but for nothing else.
        entries: the listing; a file of the kind `kept` is as it was sent.
        read: returns the next bytes of the files' content, at most so many, nothing at the end.

    Raises:
        WireError: the listing names a place outside, or files below what is no folder.
    """
    listed = list(entries)
    _check(listed)
    kinds = {path: kind for path, kind, *_ in listed}
    _remove_others(folder, kinds)
    folders = [entry for entry in listed if entry[1] == "dir"]
    for path, *_ in folders:
        (folder / path).mkdir(mode=0o700, exist_ok=True)
    for path, kind, mode, size, mtime_ns, _ in listed:
        if kind == "file":
            _write(folder / path, mode=mode, mtime_ns=mtime_ns, pieces=_pieces(size, read))
    for path, kind, _, _, _, link in listed:
        if kind == "link" and _stays_inside(path, link):
            (folder / path).symlink_to(link)
    for name, _, bits, _, changed_ns, _ in reversed(folders):
        (folder / name).chmod(bits & 0o1777 | 0o700)
        os.utime(folder / name, ns=(changed_ns, changed_ns))


def _check(entries: list[Entry]) -> None:
    folders: set[str] = {"."}
    seen: set[str] = set()
    for path, kind, *_ in entries:
        pure = PurePosixPath(path)
        is_below = not pure.is_absolute() and ".." not in pure.parts and str(pure) == path
        if not is_below or "\0" in path or str(pure.parent) not in folders or path in seen:
            raise WireError(f"expected a new path in a folder that was listed, got {path!r}")
        seen.add(path)
        if kind == "dir":
            folders.add(path)


def _remove_others(folder: Path, kinds: dict[str, str]) -> None:
    """Remove what is not of its kind in the listing, files that come anew and links included."""
    start = len(str(folder)) + 1
    for found in reversed(list(tree.entries(folder))):
        kind = kinds.get(found.path[start:], "")
        if found.is_dir(follow_symlinks=False):
            if kind != "dir":
                Path(found.path).rmdir()
        elif kind != "kept":
            Path(found.path).unlink()


def _write(path: Path, *, mode: int, mtime_ns: int, pieces: Iterable[bytes]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fchmod(fd, mode & 0o777 | 0o600)
        os.utime(fd, ns=(mtime_ns, mtime_ns))


def _pieces(size: int, read: Callable[[int], bytes]) -> Iterator[bytes]:
    while size:
        piece = read(min(CHUNK_BYTES, size))
        if not piece:
            raise WireError(f"expected {size} bytes more of a file")
        size -= len(piece)
        yield piece


def _stays_inside(path: str, link: str) -> bool:
    """Return whether a link leads to a place in its folder, other links on its way included."""
    parts = PurePosixPath(link).parts
    num_up = len(list(itertools.takewhile("..".__eq__, parts)))
    depth = len(PurePosixPath(path).parts) - 1
    return not PurePosixPath(link).is_absolute() and num_up <= depth and ".." not in parts[num_up:]
