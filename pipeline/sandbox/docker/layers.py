"""Write what a job sees of a folder as the layer of an image: equal folders, equal bytes."""

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from pipeline.sandbox import seccomp, view
from pipeline.sandbox.protocol import Mount
from pipeline.sandbox.tree import entries

# Our own programs, in the container.
INSIDE = "/run/regrow"
# The system calls that jobs may not use; the engine has a filter of its own for all.
FILTER = "filter"
# Folders of a base image that may be links there, and that nothing may be laid over.
_CLOSED = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "run")
# What the driver's interpreters hold does not change while it runs, and is long to walk through.
_known: dict[Path, str] = {}


def place(mount: Mount) -> PurePosixPath:
    """Return where the container has a readable mount.

    Raises:
        OSError: the system's folders are not to be changed.
    """
    source, target = mount.source.resolve(), PurePosixPath(mount.target)
    if str(source) == mount.target or mount.source == Path(mount.target):
        return PurePosixPath(source)
    if target.parts[1] in _CLOSED:
        raise OSError(f"Read-only file system: a mount cannot be made at {mount.target}")
    return target


def is_of_the_system(mount: Mount) -> bool:
    """Tell whether a mount is the system's own folder, of which the image has its own."""
    return mount.source.resolve() == view.SYSTEM


def signature(mount: Mount) -> str:
    """Return a text that differs where two folders differ in what a job sees of them.

    It is made from sizes and times, so that nothing is read; a `Mount.key` spares even the walk.
    """
    if mount.key or is_of_the_system(mount):
        return mount.key or "system"
    folder = mount.source.resolve()
    if folder in _known:
        return _known[folder]
    digest = hashlib.sha256()
    for name, found in _shown(folder):
        link = str((folder / name).readlink()) if stat.S_ISLNK(found.st_mode) else ""
        is_file = stat.S_ISREG(found.st_mode)
        facts = (name, found.st_mode, is_file and (found.st_size, found.st_mtime_ns), link)
        digest.update(repr(facts).encode("utf-8", "surrogateescape"))
    text = digest.hexdigest()
    if view.is_prefix(folder):
        _known[folder] = text
    return text


def write_layer(file: IO[bytes], mount: Mount) -> None:
    """Write a tar of what a job sees of a mount, with the folders above it.

    Owners and modes are the same whoever made the files; times stay, since bytecode names them.
    """
    target = place(mount)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for parent in reversed(target.parents):
            if parent.parts[1:] and str(parent) != str(view.SYSTEM):
                tar.addfile(_folder(parent))
        if is_of_the_system(mount):
            tar.addfile(_link(target, to=str(view.SYSTEM)))
            return
        folder = mount.source.resolve()
        for name, found in _shown(folder):
            _add(tar, folder / name, found, to=target / name)


def write_own_layer(file: IO[bytes], files: Mapping[str, bytes]) -> None:
    """Write a tar of what each container has of ours; see `own_files`."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in ("etc", view.HOME, INSIDE):
            tar.addfile(_folder(PurePosixPath(name)))
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))


def own_files(architecture: str) -> dict[str, bytes]:
    """Return the first process, its filter and the user's name, by path without leading slash."""
    programs = {
        _name(PurePosixPath(INSIDE, it.name)): it.read_bytes()
        for it in sorted(view.INSIDE.glob("*.py"))
    }
    programs[_name(PurePosixPath(INSIDE, FILTER))] = seccomp.program(architecture)
    return programs | {f"etc/{it}": (view.INSIDE / "etc" / it).read_bytes() for it in view.ETC}


def _shown(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what a job sees of a folder by relative path, itself first, in a lasting order."""
    yield "", folder.lstat()
    if not folder.is_dir():
        return
    hidden = (
        tuple(f"{copy}/" for copy in view.copies_below(folder)) if view.is_prefix(folder) else ()
    )
    found = [(str(Path(it.path).relative_to(folder)), it) for it in entries(folder)]
    for name, entry in sorted(found, key=lambda pair: pair[0]):
        if not name.startswith(hidden):
            yield name, entry.stat(follow_symlinks=False)


def _add(tar: tarfile.TarFile, source: Path, found: os.stat_result, *, to: PurePosixPath) -> None:
    """Add one entry; sockets and devices are left out."""
    if stat.S_ISDIR(found.st_mode):
        tar.addfile(_folder(to))
    elif stat.S_ISLNK(found.st_mode):
        tar.addfile(_link(to, to=str(source.readlink())))
    elif stat.S_ISREG(found.st_mode):
        info = tarfile.TarInfo(_name(to))
        info.mtime = int(found.st_mtime)
        info.mode = 0o755 if found.st_mode & 0o111 else 0o644
        with source.open("rb") as file:
            info.size = os.fstat(file.fileno()).st_size
            tar.addfile(info, file)


def _folder(path: PurePosixPath) -> tarfile.TarInfo:
    info = tarfile.TarInfo(_name(path))
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info


def _link(path: PurePosixPath, *, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(_name(path))
    info.type, info.linkname, info.mode = tarfile.SYMTYPE, to, 0o777
    return info


def _name(path: PurePosixPath) -> str:
    return str(path).lstrip("/")
