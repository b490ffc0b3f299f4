"""Say which folders of this machine a job of bubblewrap's sees, and where."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pipeline.leaks.walk import Root
from pipeline.sandbox import view
from pipeline.sandbox.protocol import Job

# Those of bwrap's options that two values follow; the others have one.
_PAIRS = frozenset({"--ro-bind", "--ro-bind-try", "--bind", "--symlink"})
_BINDS = _PAIRS - {"--symlink"}
_COVERS = frozenset({"--tmpfs", "--proc", "--dev"})


def roots_of_job(job: Job) -> tuple[Root, ...]:
    """Return all folders and files that a job sees, but for what the kernel makes up.

    They are read from the very arguments that its sandbox is started with.

    Raises:
        ValueError: no sandbox can make sense of the job.
    """
    view.check_job(job)
    roots: list[Root] = []
    source = ""
    for option, values in _options(view.arguments(job)):
        if option in _COVERS:
            roots = list(_covered(roots, values[0]))
        elif option == "--overlay-src":
            source = values[0]
        elif option == "--tmp-overlay":
            roots = [*_covered(roots, values[0]), Root(folder=Path(source), target=values[0])]
        elif option in _BINDS and Path(values[0]).exists():
            roots = [*_covered(roots, values[1]), Root(folder=Path(values[0]), target=values[1])]
    return tuple(roots)


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    at = 0
    while at < len(arguments):
        option = arguments[at]
        num_values = 2 if option in _PAIRS else 1
        yield option, arguments[at + 1 : at + 1 + num_values]
        at += 1 + num_values


def _covered(roots: Sequence[Root], target: str) -> Iterator[Root]:
    """Yield what is still seen of some roots once something is laid over a place."""
    place = PurePosixPath(target)
    for root in roots:
        seen = PurePosixPath(root.target)
        if seen == place or seen.is_relative_to(place):
            continue
        if place.is_relative_to(seen):
            hidden = str(place.relative_to(seen))
            yield replace(root, masked=(*root.masked, hidden))
        else:
            yield root
