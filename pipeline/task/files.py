"""Write files whole or not at all, so that a crash or a full disk never leaves half of one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file at `path` by `data`, durably and in one step.

    Raises:
        OSError: the disk is full or broken; the old file is untouched.
    """
    with staged(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; it becomes `path` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Random, so that writers on several machines of one file system never share it.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the list of names of a folder, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove what crashed writers left; only while nobody writes there."""
    for temporary in folder.glob(f".*{TEMPORARY_SUFFIX}"):
        temporary.unlink(missing_ok=True)
