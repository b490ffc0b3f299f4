"""Keep a source tree as a canonical archive, named by the digest of its content."""

import hashlib
import os
import stat
import tarfile
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from pipeline.archive import CHUNK_BYTES, unpack_archive
from pipeline.cache import beside, publish
from pipeline.task.files import staged
from pipeline.task.origin import Snapshot

SUFFIX = ".tar.zst"
# 2000-01-01: a time that zip files, tars and compiled bytecode can all hold.
MTIME = 946684800


def pack(tree: Path, *, into: Path, released: str) -> tuple[Snapshot, Path]:
    """Write `into/<digest>.tar.zst` and return the Snapshot with the archive's path.

    The digest depends on names, contents, executable bits and link targets alone, never on
    times, owners or the order of the disk. Empty folders are not kept.
    """
    files = _files(tree)
    digest = _Digest()
    _write_tar(tree, files, cast("IO[bytes]", digest))
    snapshot = Snapshot(
        digest=digest.sha256.hexdigest(),
        released=released,
        num_files=len(files),
        num_bytes=sum((tree / file).lstat().st_size for file in files),
    )
    archive = into / f"{snapshot.digest}{SUFFIX}"
    if not archive.exists():
        with staged(archive) as temporary, pa.CompressedOutputStream(str(temporary), "zstd") as out:
            _write_tar(tree, files, out)
    return snapshot, archive


def unpack(archive: Path, folder: Path) -> None:
    """Restore a tree into an empty folder, with fixed times.

    Raises:
        ValueError: the content is not what the archive's name says; nothing was unpacked.
    """
    expected = archive.name.removesuffix(SUFFIX)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tar = Path(scratch, "snapshot.tar")
        digest = _decompress(archive, tar)
        if digest != expected:
            raise ValueError(f"{archive}: the content's sha256 is {digest}, expected {expected}")
        unpack_archive(tar, folder)


def snapshot_tree(archive: Path, *, cache: Path) -> Path:
    """Return the archive's tree under `cache/trees`, unpacked at its first use.

    Raises:
        ValueError: the content is not what the archive's name says.
    """
    folder = cache / "trees" / archive.name.removesuffix(SUFFIX)
    if not folder.is_dir():
        with beside(folder) as scratch:
            tree = scratch / "tree"
            tree.mkdir()
            unpack(archive, tree)
            publish(tree, folder)
    return folder


def _files(tree: Path) -> list[str]:
    """List files and links, sorted by path."""
    found: list[str] = []
    for parent, folders, names in os.walk(tree):
        links = [name for name in folders if Path(parent, name).is_symlink()]
        found += [Path(parent, name).relative_to(tree).as_posix() for name in names + links]
    return sorted(found)


def _write_tar(tree: Path, files: list[str], stream: IO[bytes]) -> None:
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for file in files:
            path = tree / file
            member = _member(path, file)
            with nullcontext() if member.issym() else path.open("rb") as content:
                tar.addfile(member, content)


def _member(path: Path, name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mtime = MTIME
    status = path.lstat()
    if path.is_symlink():
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
    else:
        member.size = status.st_size
        member.mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    return member


class _Digest:
    """A stream for tarfile that keeps nothing but the sha256 of what is written."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return len(data)


def _decompress(archive: Path, tar: Path) -> str:
    """Write the uncompressed archive and return its sha256."""
    digest = hashlib.sha256()
    try:
        with pa.input_stream(str(archive), compression="zstd") as stream, tar.open("wb") as out:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
                out.write(chunk)
    except OSError as error:
        if error.errno is not None:
            raise
        # What pyarrow says of bytes that are no zstd.
        raise ValueError(f"{archive}: {error}") from error
    return digest.hexdigest()
