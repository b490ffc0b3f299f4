"""What is known of whether a solver can read a Task's answer: what was found, what was not read."""

from dataclasses import dataclass
from typing import Literal

# Where a copy of deleted code may stand, by what made it.
Channel = Literal[
    "git",
    "bytecode",
    "type-checker cache",
    "test cache",
    "coverage",
    "build output",
    "installed copy",
    "package cache",
    "vendored copy",
    "temporary folder",
    "built documentation",
    "documentation",
    "stub",
    "test",
    "source",
    "index or backup",
    "java",
    "native",
    "javascript",
    "image layer",
    "instruction",
    "network",
    "other",
]
# What of a symbol can be recovered.
Part = Literal["name", "signature", "docstring", "body"]
# `unread`: nothing was found, but not all could be read.
LeakVerdict = Literal["clean", "leaks", "unread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place that gives something of the deleted code away.

    Example: `Finding(channel="bytecode", path="/pyc/env/a.pyc", parts=("body",), …)`.
    """

    channel: Channel
    # As the solver sees it.
    path: str
    # What had to be undone to read it, outermost first: `zip:pkg/a.py`, `zlib@1042`.
    decoders: tuple[str, ...]
    # Of the deleted code, as `path:qualname`.
    symbol: str
    parts: tuple[Part, ...]
    # How much of the body was found, weighed by rarity; 0 to 1.
    share: float
    # sha256 of the piece that was read.
    excerpt: str
    # No Task may have it; else it is recorded alone.
    blocks: bool
    # Why it blocks, or why it may stay.
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The result of scanning everything that a solver of a Task can read."""

    verdict: LeakVerdict
    # sha256 of the fingerprints that were looked for: those of the whole Snapshot.
    prints: str
    # Of the tree and the request: files, and bytes with what was decoded. What else a solver sees
    # is scanned too, and not counted: it is another on every machine.
    num_files: int
    num_bytes: int
    # Outside of tree and request only what blocks.
    findings: tuple[Finding, ...]
    # What nothing is known of: `path: why`.
    unread: tuple[str, ...]
    # Deleted symbols whose bodies are so short or common that no copy of one could be told.
    unprovable: tuple[str, ...] = ()


NOT_SCANNED = Certificate(
    verdict="unread", prints="", num_files=0, num_bytes=0, findings=(), unread=("all: not scanned",)
)
