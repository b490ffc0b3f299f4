"""Find out once a machine what each file of its system defines."""

import gzip
import hashlib
import json
import logging
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pipeline.leaks.budget import Budget, Meter
from pipeline.leaks.definitions import ANYTHING
from pipeline.leaks.walk import Entry, Root, walk
from pipeline.task.files import write_whole

# Raised by every change of what a survey says.
VERSION = 2
# Files that a process looks into at a time.
PART = 2000
# With more to look into, people wonder what takes so long.
MANY = 5000
LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from pipeline.leaks.definitions import main
main()
"""
_LOG = logging.getLogger(__name__)

# By path, as a solver sees it: the names of functions that a file defines. Others define none.
Survey = Mapping[str, Sequence[str]]


@cache
def survey_system(system: tuple[Root, ...], *, folder: Path) -> Survey:
    """Return what the files of a system define.

    Every file is opened as a scan opens it, but programs and libraries, in which text alone is
    looked for. That takes a minute or two, on all cores; afterwards only files that have changed
    are opened again.

    Args:
        system: all of it that a solver sees.
        folder: where surveys are kept, by nobody but us.
    """
    kept = folder / f"system-{_name_of(system)}.json.gz"
    known = _read(kept)
    sources = {entry.path: entry.source for entry in _files_of(system)}
    files = {path: _Seen.of(source) for path, source in sources.items()}
    new = [path for path, seen in files.items() if seen.stamp != known.get(path, _UNSEEN).stamp]
    if new:
        if len(new) > MANY:
            _LOG.warning("looking through %d files of the system, once a machine", len(new))
        found = _look_into([(path, sources[path]) for path in new])
        known = {path: known[path] for path in files.keys() & known.keys()} | {
            path: replace(files[path], names=tuple(found[path])) for path in new
        }
        _write(kept, known)
    return {
        path: seen.names for path, seen in sorted(known.items()) if seen.names and path in files
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A file when it was looked into."""

    # Size, time of change in nanoseconds, number of the inode.
    stamp: tuple[int, int, int]
    names: tuple[str, ...] = ()

    @staticmethod
    def of(source: str) -> "_Seen":
        status = os.lstat(source)
        return _Seen(stamp=(status.st_size, status.st_mtime_ns, status.st_ino))


_UNSEEN = _Seen(stamp=(-1, -1, -1))


def _read(kept: Path) -> dict[str, _Seen]:
    """Return what is kept; nothing where that is nothing, or broken."""
    try:
        rows = json.loads(gzip.decompress(kept.read_bytes()).decode("utf-8", "surrogatepass"))
        return {
            path: _Seen(stamp=(size, time, inode), names=tuple(names))
            for path, size, time, inode, names in rows
        }
    except (OSError, EOFError, TypeError, ValueError, zlib.error):
        return {}


def _write(kept: Path, known: Mapping[str, _Seen]) -> None:
    rows = [(path, *it.stamp, it.names) for path, it in sorted(known.items())]
    text = json.dumps(rows, separators=(",", ":")).encode("utf-8", "surrogatepass")
    write_whole(kept, gzip.compress(text, compresslevel=1, mtime=0))


def _name_of(system: Sequence[Root]) -> str:
    """Return a digest of the places that a solver sees."""
    said = repr((VERSION, [(root.target, root.masked) for root in system]))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _files_of(system: Sequence[Root]) -> Iterator[Entry]:
    meter = Meter(Budget())
    for root in system:
        yield from (entry for entry in walk(root, meter) if entry.why is None)


def machine_folder(cache: Path) -> Path:
    """Return where surveys of this machine are kept: one for all caches, unless it is not ours."""
    # Not where a command keeps its own temporary files: they go with it.
    folder = Path(os.environ.get("TMPDIR") or "/tmp", f"regrow-system-{os.getuid()}")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_ours and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return folder
    return cache / "verdicts"


def files_that_define(
    names: frozenset[str], survey: Survey, *, system: Sequence[Root]
) -> Iterator[Root]:
    """Yield the files of a system that define one of some names, or that were not read whole."""
    for path, defined in survey.items():
        if ANYTHING in defined or not names.isdisjoint(defined):
            yield from _at(path, system)


def _at(path: str, system: Sequence[Root]) -> Iterator[Root]:
    """Yield the file that a solver sees at a path."""
    for root in system:
        target = root.target.rstrip("/")
        if path == root.target or path.startswith(f"{target}/"):
            yield Root(folder=Path(f"{root.folder.resolve()}{path[len(target) :]}"), target=path)


def _look_into(files: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what each of some files defines, given by path and source."""
    parts = [files[at : at + PART] for at in range(0, len(files), PART)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(_look_into_part, parts))
    return {path: names for part in found for path, names in part.items()}


def _look_into_part(files: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Have a process of its own look into files, so that none waits for another."""
    done = subprocess.run(
        # Nothing is imported from where the command was started, which may be anybody's folder.
        (sys.executable, "-P", "-c", LOOK, str(Path(__file__).parents[2])),
        input=json.dumps([source for _, source in files]).encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OSError(f"the survey of the system ended with {done.returncode}: {last}")
    return dict(zip((path for path, _ in files), json.loads(done.stdout), strict=True))
