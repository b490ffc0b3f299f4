"""Unpack tars and zips of foreign origin, strictly inside one folder."""

import calendar
import contextlib
import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

MAX_BYTES = 2**30
MAX_FILES = 200_000
CHUNK_BYTES = 2**20
# Longer names would be refused by some file systems, and longer link targets by Linux.
MAX_NAME_BYTES, MAX_PART_BYTES, MAX_TARGET_BYTES = 1000, 255, 4095
# Later times, in seconds since the epoch, overflow in some file systems.
LAST_MTIME = 2.0**32

UNREADABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    RuntimeError,  # what zipfile says of encryption and odd compressions
    ValueError,  # what both say of odd headers
    struct.error,
)


class UnsafeArchiveError(ValueError):
    """An archive that would write outside its folder, is no archive, or is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of an archive.

    Example: `Member(name="toolz-1.2.0/setup.py", kind="file", executable=False, …)`.
    """

    # As spelled in the archive.
    name: str
    kind: Literal["file", "folder", "link"]
    executable: bool
    # Where a link points to, relative to its own folder.
    target: str
    # Seconds since the epoch.
    mtime: float
    # The content of a file.
    content: IO[bytes] | None


def unpack_archive(archive: Path, folder: Path) -> None:
    """Unpack a tar (any compression) or zip into an empty folder, times kept.

    Raises:
        UnsafeArchiveError: absolute or climbing names, links that leave the folder, devices,
            names or targets in no known encoding, over `MAX_BYTES` or `MAX_FILES`, or no archive
            at all.
    """
    members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    try:
        with contextlib.closing(members(archive)) as stream:
            _write(stream, folder)
    except UnsafeArchiveError:
        raise
    except UNREADABLE as error:
        raise UnsafeArchiveError(f"{archive.name} is no readable archive: {error}") from error


def check_links(folder: Path) -> None:
    """Make sure that every symbolic link of a tree ends inside it.

    Raises:
        UnsafeArchiveError: one does not.
    """
    root = folder.resolve()
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in folders + files):
            # Not `Path.resolve`, which fails on links that go in circles.
            end = Path(os.path.realpath(path)) if path.is_symlink() else root
            if not end.is_relative_to(root):
                raise UnsafeArchiveError(f"link {path.relative_to(folder)} leaves the tree")


def _write(members: Iterator[Member], folder: Path) -> None:
    """Write files first and links last, so that nothing is written through a link."""
    links: list[tuple[Path, str]] = []
    num_bytes = 0
    for num_files, member in enumerate(members, start=1):
        path = folder / _inside(member.name)
        if num_files > MAX_FILES:
            raise UnsafeArchiveError(f"over {MAX_FILES} files")
        if member.kind == "link":
            links.append((path, member.target))
        elif member.kind == "folder":
            _make_folder(path)
        else:
            num_bytes += _write_file(member, path, budget_bytes=MAX_BYTES - num_bytes)
    for path, target in links:
        _make_link(path, target, root=folder.resolve())
    check_links(folder)


def _make_link(path: Path, target: str, *, root: Path) -> None:
    # Through an earlier link, even the folder could be made elsewhere.
    if not Path(os.path.realpath(path.parent)).is_relative_to(root):
        raise UnsafeArchiveError(f"{path.name} is behind a link that leaves the tree")
    _make_folder(path.parent)
    if os.path.lexists(path):
        raise UnsafeArchiveError(f"{path.name} is a link and something else")
    if not target or _is_strange(target) or len(os.fsencode(target)) > MAX_TARGET_BYTES:
        raise UnsafeArchiveError(f"{path.name} is a link to {target[:MAX_PART_BYTES]!r}")
    path.symlink_to(target)


def _inside(name: str) -> PurePosixPath:
    """Return the member's path when it is relative, does not climb, and is UTF-8 of sane length."""
    path = PurePosixPath(name)
    parts = [part.encode("utf-8", "replace") for part in path.parts]
    long = sum(map(len, parts)) > MAX_NAME_BYTES or any(len(it) > MAX_PART_BYTES for it in parts)
    if path.is_absolute() or ".." in path.parts or _is_strange(name) or long:
        raise UnsafeArchiveError(f"member {name!r} is not a plain path inside the archive")
    return path


def _is_strange(text: str) -> bool:
    """Tell whether a name or target has NUL, or bytes that are not UTF-8."""
    return "\0" in text or text.encode("utf-8", "replace") != os.fsencode(text)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UnsafeArchiveError(f"{path.name} is a file and a folder") from error


def _write_file(member: Member, path: Path, *, budget_bytes: int) -> int:
    """Copy a file's content, the last of equal names wins; return its size."""
    _make_folder(path.parent)
    if path.is_dir():
        raise UnsafeArchiveError(f"{path.name} is a file and a folder")
    assert member.content is not None
    num_bytes = 0
    with path.open("wb") as out:
        while chunk := member.content.read(CHUNK_BYTES):
            num_bytes += len(chunk)
            if num_bytes > budget_bytes:
                raise UnsafeArchiveError(f"over {MAX_BYTES} bytes unpacked")
            out.write(chunk)
    path.chmod(0o755 if member.executable else 0o644)
    os.utime(path, (member.mtime, member.mtime))
    return num_bytes


def _tar_members(archive: Path) -> Generator[Member, None, None]:
    with tarfile.open(archive) as tar:
        for info in tar:
            yield _tar_member(tar, info)


def _tar_member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    """Describe a member; a hard link is a file with the content of its target."""
    if not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        raise UnsafeArchiveError(f"member {info.name!r} is a device or pipe")
    is_file = info.isreg() or info.islnk()
    try:
        content = tar.extractfile(info) if is_file else None
    except KeyError as error:
        raise UnsafeArchiveError(f"member {info.name!r} is linked to nothing") from error
    if is_file and content is None:
        raise UnsafeArchiveError(f"member {info.name!r} is a hard link to a folder")
    return Member(
        name=info.name,
        kind="link" if info.issym() else "folder" if info.isdir() else "file",
        executable=bool(info.mode & stat.S_IXUSR),
        target=info.linkname,
        mtime=_clamped(info.mtime),
        content=content,
    )


def _zip_members(archive: Path) -> Generator[Member, None, None]:
    with zipfile.ZipFile(archive) as container:
        for info in container.infolist():
            mode = info.external_attr >> 16
            kind = stat.S_IFMT(mode)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}:
                raise UnsafeArchiveError(f"member {info.filename!r} is a device or pipe")
            is_link = kind == stat.S_IFLNK
            with container.open(info) as content:
                yield Member(
                    name=info.filename,
                    kind="link" if is_link else "folder" if info.is_dir() else "file",
                    executable=bool(mode & stat.S_IXUSR),
                    target=os.fsdecode(content.read(MAX_TARGET_BYTES + 1)) if is_link else "",
                    mtime=_zip_mtime(info),
                    content=content,
                )


def _zip_mtime(info: zipfile.ZipInfo) -> float:
    """Return a member's time; many tools write month 0 and day 0 for no date."""
    year, month, day, *clock = info.date_time
    date = (year, min(max(1, month), 12), max(1, day))
    return _clamped(calendar.timegm((*date, *clock, 0, 0, 0)))


def _clamped(mtime: float) -> float:
    return min(max(0.0, float(mtime)), LAST_MTIME)


def strip_top(folder: Path) -> Path:
    """Return the single top folder of an unpacked sdist, or the folder when it has none."""
    entries = list(folder.iterdir())
    single = len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink()
    return entries[0] if single else folder
