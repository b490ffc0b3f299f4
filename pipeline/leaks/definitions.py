"""Say what files define: paths as JSON on standard input, names as JSON on standard output."""

import json
import mmap
import re
import signal
import sys
from collections.abc import Iterator

from pipeline.leaks.budget import Budget, Meter, SpentError
from pipeline.leaks.decode.piece import Gap, Piece
from pipeline.leaks.decode.unfold import unfold
from pipeline.leaks.reading import read_file

# Not all of a file was read, so that it may define anything.
ANYTHING = "*"
ELF = b"\x7fELF"
_DEFINED = re.compile(rb"\bdef (\w+) ?\(")
_NAMED = re.compile(rb'"(?:qual)?name": ?"(?:[^"]*\.)?(\w+)"')


def main() -> None:
    """Answer for the files that are asked for, in order."""
    # Whoever started this ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    meter = Meter(Budget())
    json.dump([defined_in(source, meter) for source in json.load(sys.stdin)], sys.stdout)


def defined_in(source: str, meter: Meter) -> list[str]:
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
