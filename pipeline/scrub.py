"""Remove from a source tree what tools have left there with copies of its code."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from pipeline.leaks.base import BUDGET
from pipeline.leaks.channel import channel_of
from pipeline.leaks.judge import judge
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import snapshot_prints
from pipeline.leaks.scan import scan_files
from pipeline.leaks.verdicts import Verdicts
from pipeline.task.certificate import Channel
from pipeline.task.patch import is_protected
from pipeline.task.tree import read_tree

# What tools make; all else was written by somebody, and is a matter of the leak gate.
RESIDUES: frozenset[Channel] = frozenset({
    "git",
    "bytecode",
    "type-checker cache",
    "test cache",
    "coverage",
    "build output",
    "installed copy",
    "package cache",
    "built documentation",
    "index or backup",
})


def scrub(tree: Path) -> tuple[str, ...]:
    """Remove residues in which a body of the tree's own code can be read; return their paths.

    A residue that holds none of it stays, whatever it is called, and so does one that a test
    names: a suite that needs it would break, and the leak gate refuses the tasks that it gives
    away.

    Args:
        tree: changed in place.
    """
    files = read_tree(tree)
    suspects = {path: files[path] for path in files if _is_residue(path)}
    if not suspects:
        return ()
    named = _named_by_tests(files)
    gone = tuple(
        path
        for path in sorted(_telling(suspects, files))
        if PurePosixPath(path).name.encode() not in named
    )
    for path in gone:
        (tree / path).unlink()
    return gone


def _is_residue(path: str) -> bool:
    return not is_protected(path) and channel_of(f"/{path}") in RESIDUES


def _telling(suspects: Mapping[str, bytes], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the suspects in which a body of the other files can be read."""
    prints = snapshot_prints({path: files[path] for path in files.keys() - suspects.keys()})
    scanned = scan_files(suspects, matcher=Matcher(prints), verdicts=Verdicts(), budget=BUDGET)
    held = {path: frozenset[int]() for path in suspects}
    for place in scanned.places:
        held[place.path] |= place.found
    for path, found in held.items():
        if any("body" in it.parts for it in judge(found, prints)):
            yield path


def _named_by_tests(files: Mapping[str, bytes]) -> bytes:
    return b"\n".join(content for path, content in files.items() if is_protected(path))
