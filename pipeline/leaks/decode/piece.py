"""What decoding yields: parts to decode further, pieces to match, gaps that nothing could read."""

import mmap
from dataclasses import dataclass

from pipeline.leaks.budget import Why
from pipeline.leaks.match import Form

# The content of a file, or what was decoded from it; what is large is not held in memory.
Data = bytes | mmap.mmap


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """What a decoder found inside of something.

    Example: `Inner(label="zip:pkg/a.py", data=b"def f(): …")`.
    """

    # The decoder and where it stood: `zlib@1042`.
    label: str
    data: Data
    # None: it may be anything.
    form: Form | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Content that nothing decodes further.

    Example: `Piece(decoders=("zip:a.pyc", "pyc 3.11"), form="code", data=b'{"name": …')`.
    """

    # Labels of Parts, outermost first.
    decoders: tuple[str, ...]
    form: Form
    data: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Content that was not read.

    Example: `Gap(decoders=("zip:secret.py",), why="encrypted")`.
    """

    decoders: tuple[str, ...]
    why: Why
