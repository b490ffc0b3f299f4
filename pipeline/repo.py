"""Turn a Repo into a Snapshot: get its files, make sure of them, keep them as an archive."""

import datetime as dt
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.archive import UnsafeArchiveError, check_links, strip_top, unpack_archive
from pipeline.checkout import checkout
from pipeline.hygiene import ANYWHERE, clean
from pipeline.index import download, find_sdist
from pipeline.metadata import Project, read_project
from pipeline.scrub import scrub
from pipeline.snapshot import pack
from pipeline.task.origin import Repo, Snapshot, Source
from pipeline.task.reject import Reject

# Days that build tools write for every file, so that archives are reproducible.
FIXED_DAYS = frozenset({"1970-01-01", "1980-01-01", "1985-10-26", "2016-01-01", "2020-02-02"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A Repo's files and what they say of themselves.

    Example: `Fetched(snapshot=Snapshot(…), archive=Path("run/snapshots/3f9c….tar.zst"), …)`.
    """

    snapshot: Snapshot
    # `<digest>.tar.zst`, for `pipeline.snapshot.snapshot_tree`.
    archive: Path
    # Read before cleaning, which removes what it was read from.
    project: Project


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    tree: Path
    # ISO date.
    released: str


def fetch(
    repo: Repo, *, into: Path, cache: Path, index: str, base: Path = Path()
) -> Fetched | Reject:
    """Get a Repo's files as a Snapshot, archived under `into/snapshots`.

    Args:
        repo: where the files come from.
        into: the run's folder.
        cache: where downloads are kept, by sha256.
        index: URL of the package index, where sdists are; see `pipeline.index.package_index`.
        base: where relative paths of folders and git repositories start: the manifest's folder.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as scratch:
        folder = Path(scratch, "files")
        folder.mkdir()
        try:
            located = replace(repo, source=_located(repo.source, base=base))
            found = _get(located, folder=folder, cache=cache, index=index)
            if isinstance(found, Reject):
                return found
            check_links(found.tree)
        except UnsafeArchiveError as error:
            return Reject(stage="fetch", reason="unsafe_archive", detail=str(error))
        project = read_project(found.tree, name=repo.name)
        clean(found.tree, project=project.name)
        if not any(found.tree.rglob("*.py")):
            return Reject(stage="fetch", reason="no_python", detail=f"{repo.name}: no .py file")
        scrubbed = scrub(found.tree)
        packed, archive = pack(found.tree, into=into / "snapshots", released=found.released)
        snapshot = replace(packed, scrubbed=scrubbed)
        return Fetched(snapshot=snapshot, archive=archive, project=project)


def _located(source: Source, *, base: Path) -> Source:
    """Return a source on this machine with its absolute path; others stay as they are."""
    path = os.path.realpath(base / source.location)
    is_repository = source.kind == "git" and os.access(path, os.F_OK)  # else it is a URL
    is_here = source.kind == "path" or is_repository
    return replace(source, location=path) if is_here else source


def _get(repo: Repo, *, folder: Path, cache: Path, index: str) -> _Found | Reject:
    source = repo.source
    if source.kind == "sdist":
        return _get_sdist(repo, folder=folder, cache=cache, index=index)
    if source.kind == "git":
        released = checkout(source, folder)
        return released if isinstance(released, Reject) else _Found(tree=folder, released=released)
    return _copy(source, folder)


def _get_sdist(repo: Repo, *, folder: Path, cache: Path, index: str) -> _Found | Reject:
    """Download and unpack; where the index tells no upload, the manifest's date is its day."""
    file = find_sdist(repo.source, index=index)
    if isinstance(file, Reject):
        return file
    archive = download(file, pin=repo.source.pin, folder=cache / "downloads")
    if isinstance(archive, Reject):
        return archive
    unpack_archive(archive, folder)
    released = file.uploaded or repo.install.exclude_newer or _newest_day(folder)
    return _Found(tree=strip_top(folder), released=released)


def _copy(source: Source, folder: Path) -> _Found | Reject:
    origin = Path(source.location)
    if not origin.is_dir():
        return Reject(stage="fetch", reason="unreachable", detail=f"{origin}: no such folder")
    shutil.copytree(origin, folder, symlinks=True, ignore=_not_copied, dirs_exist_ok=True)
    return _Found(tree=folder, released=_newest_day(folder))


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """Skip what cleaning would remove and could be large, and what is no file at all."""
    paths = [Path(folder, name) for name in names]
    return {
        path.name
        for path in paths
        if path.name in ANYWHERE
        or (path / "pyvenv.cfg").is_file()
        or not (path.is_symlink() or path.is_dir() or path.is_file())
    }


def _newest_day(folder: Path) -> str:
    """Return the newest day of a file's change, of those that a build tool did not make up."""
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    seconds = {file.lstat().st_mtime for file in files if not file.is_symlink()}
    days = {dt.datetime.fromtimestamp(time, tz=dt.UTC).date().isoformat() for time in seconds}
    return max(days - FIXED_DAYS or days, default="1970-01-01")
