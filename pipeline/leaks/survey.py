"""Find out once a machine what each file of its system defines."""

import hashlib
import json
import mmap
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from pipeline.leaks.budget import Budget, Meter, SpentError
from pipeline.leaks.decode.piece import Gap, Piece
from pipeline.leaks.decode.unfold import unfold
from pipeline.leaks.reading import read_file
from pipeline.leaks.walk import Root, walk
from pipeline.task.files import write_whole

# Raised by every change of what a survey says.
VERSION = 1
# In the survey: not all of the file was read, so that it may define anything.
ANYTHING = "*"
ELF = b"\x7fELF"
_DEFINED = re.compile(rb"\bdef (\w+) ?\(")
_NAMED = re.compile(rb'"(?:qual)?name": ?"(?:[^"]*\.)?(\w+)"')

# By path, as a solver sees it: the names of functions that a file defines. Others define none.
Survey = Mapping[str, Sequence[str]]


def survey_system(system: Sequence[Root], *, cache: Path) -> Survey:
    """Return what the files of a system define.

    Every file is opened as a scan opens it, but programs and libraries, in which text alone is
    looked for. That takes minutes, on all cores; it is kept until a file of the system changes.
    """
    kept = cache / "verdicts" / f"system-{_state_of(tuple(system))}.json"
    if not kept.exists():
        text = json.dumps(_survey(system), sort_keys=True)
        write_whole(kept, text.encode("utf-8", "surrogatepass"))
    survey: Survey = json.loads(kept.read_bytes().decode("utf-8", "surrogatepass"))
    return survey


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


@cache
def _state_of(system: tuple[Root, ...]) -> str:
    """Return a digest of the names, sizes and times of all files."""
    digest = hashlib.sha256(f"regrow-survey-{VERSION}\n".encode())
    meter = Meter(Budget())
    for entry in (entry for root in system for entry in walk(root, meter)):
        if entry.why is None:
            status = os.lstat(entry.source)
            said = f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n"
            digest.update(said.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _survey(system: Sequence[Root]) -> dict[str, list[str]]:
    parts = [part for root in system for part in _parts(root)]
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_interrupts
    ) as pool:
        return {path: names for found in pool.map(_survey_part, parts) for path, names in found}


def _leave_interrupts() -> None:
    """Leave it to the command to end its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _parts(root: Root, *, depth: int = 2) -> Iterator[Root]:
    """Split a root into its folders of some depth, and the files above those."""
    folder = root.folder.resolve()
    if depth == 0 or not folder.is_dir():
        yield replace(root, folder=folder)
        return
    for inner in sorted(folder.iterdir()):
        prefix = f"{inner.name}/"
        masked = tuple(it.removeprefix(prefix) for it in root.masked if it.startswith(prefix))
        if inner.name not in root.masked and not inner.is_symlink():
            target = f"{root.target.rstrip('/')}/{inner.name}"
            yield from _parts(Root(folder=inner, target=target, masked=masked), depth=depth - 1)


def _survey_part(part: Root) -> list[tuple[str, list[str]]]:
    meter = Meter(Budget())
    entries = [it for it in walk(part, meter) if it.why is None]
    found = ((it.path, _defined_in(it.source, meter)) for it in entries)
    return [(path, names) for path, names in found if names]


def _defined_in(source: str, meter: Meter) -> list[str]:
    """Return the names of the functions that a file defines, whatever it is wrapped in."""
    if _is_plain_program(source):
        return []
    try:
        data, why = read_file(source, meter)
        names = {name for piece in unfold(data, meter) for name in _names_in(piece)}
    except SpentError:
        return [ANYTHING]
    return sorted({*names, ANYTHING} if why else names)


def _is_plain_program(source: str) -> bool:
    """Tell whether a file is a program or library without the text of a definition."""
    try:
        with open(source, "rb") as file:  # noqa: PTH123  thousands of files, whose paths are texts
            if file.read(len(ELF)) != ELF:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return content.find(b"def ") < 0
    except (OSError, ValueError):
        return False


def _names_in(piece: Piece | Gap) -> Iterator[str]:
    if isinstance(piece, Gap):
        yield ANYTHING
        return
    if piece.form == "code":
        yield from (name.decode() for name in _NAMED.findall(piece.data))
    elif piece.data.find(b"def ") >= 0:
        yield from (name.decode() for name in _DEFINED.findall(piece.data))
