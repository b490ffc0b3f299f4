"""Find a Snapshot's keys in all that a solver sees, and say what was not read."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.leaks.budget import Budget, Meter, SpentError, Why
from pipeline.leaks.decode.mapped import digest_of, windows
from pipeline.leaks.decode.piece import Data, Gap, Piece
from pipeline.leaks.decode.unfold import unfold
from pipeline.leaks.match import Form
from pipeline.leaks.reading import read_file
from pipeline.leaks.verdicts import Hit, Shelf, Verdict, Verdicts
from pipeline.leaks.walk import Root, walk
from pipeline.sandbox.protocol import MIB

# A longer piece is matched in windows, which share what a symbol may take up.
_WINDOW_BYTES, _OVERLAP_BYTES = 2 * MIB, 2**16


class Matches(Protocol):
    """Finds keys in pieces: the Matcher, or its plain twin."""

    digest: str

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        """Return the keys that a piece holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where keys of a Snapshot are.

    Example: `Place(path="/tmp/a.whl", decoders=("zip:pkg/a.py",), keys=…, excerpt="9f86d0…")`.
    """

    # As the solver sees it.
    path: str
    # What had to be opened, outermost first.
    decoders: tuple[str, ...]
    # As in `Hit`.
    keys: bytes
    # sha256 of the piece, in hexadecimal.
    excerpt: str

    @property
    def found(self) -> frozenset[int]:
        """Return the keys."""
        return frozenset(np.frombuffer(self.keys, dtype=np.uint64).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What was not read.

    Example: `Unread(path="/tmp/a.zip", decoders=("zip:secret",), why="encrypted")`.
    """

    path: str
    decoders: tuple[str, ...]
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What a scan came to; the same whatever verdicts were known before."""

    # By path, then as they lie in it.
    places: tuple[Place, ...]
    unread: tuple[Unread, ...]
    # Regular files that were looked into.
    num_files: int
    # Of these files, with all that was decoded from them.
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A file to scan."""

    # As the solver sees it.
    path: str
    # What was read of it.
    data: Data
    # Why that is not all.
    why: Why | None = None
    # What the file is itself in, such as the layer of an image.
    decoders: tuple[str, ...] = ()


Items = Callable[[Meter], Iterator[Item]]


def scan_roots(
    roots: Iterable[Root], *, matcher: Matches, verdicts: Verdicts, budget: Budget
) -> Scanned:
    """Scan everything below some roots."""

    def items(meter: Meter) -> Iterator[Item]:
        for entry in (entry for root in roots for entry in walk(root, meter)):
            data, why = (b"", entry.why) if entry.why else read_file(entry.source, meter)
            yield Item(path=entry.path, data=data, why=why)

    return scan_items(items, matcher=matcher, verdicts=verdicts, budget=budget)


def scan_files(
    files: Mapping[str, bytes], *, matcher: Matches, verdicts: Verdicts, budget: Budget
) -> Scanned:
    """Scan contents by path: a tree in memory, the texts of an instruction."""

    def items(meter: Meter) -> Iterator[Item]:
        for path, content in files.items():
            meter.count_entry()
            meter.begin_file(len(content))
            yield Item(path=path, data=content)

    return scan_items(items, matcher=matcher, verdicts=verdicts, budget=budget)


def scan_items(items: Items, *, matcher: Matches, verdicts: Verdicts, budget: Budget) -> Scanned:
    """Scan files as they are read, one in memory at a time."""
    meter = Meter(budget)
    with verdicts.shelf(matcher.digest, budget) as shelf:
        scan = _Scan(matcher, shelf, meter)
        try:
            for item in items(meter):
                scan.take(item)
        except SpentError as error:
            scan.note(scan.last_path, (), error.why)
    return scan.finish()


class _Scan:
    """Owns what was found so far."""

    def __init__(self, matcher: Matches, shelf: Shelf, meter: Meter) -> None:
        self.last_path = "/"
        self._matcher = matcher
        self._shelf = shelf
        self._meter = meter
        self._places: list[Place] = []
        self._unread: list[Unread] = []
        self._num_files = 0
        self._num_bytes = 0
        # Equal content has equal keys; most places are of a few.
        self._known: dict[bytes, bytes] = {}

    def take(self, item: Item) -> None:
        """Scan a file.

        Raises:
            SpentError: the whole scan has used too much.
        """
        self.last_path = item.path
        if item.why is not None:
            self.note(item.path, item.decoders, item.why)
        if not len(item.data):
            self._num_files += item.why is None
            return
        verdict = self._verdict(item.data)
        self._num_files += 1
        self._num_bytes += verdict.num_bytes
        for hit in verdict.hits:
            place = Place(
                path=item.path,
                decoders=(*item.decoders, *hit.decoders),
                keys=self._known.setdefault(hit.keys, hit.keys),
                excerpt=hit.excerpt,
            )
            self._places.append(place)
        for gap in verdict.gaps:
            self.note(item.path, (*item.decoders, *gap.decoders), gap.why)
        if self._meter.is_spent:
            raise SpentError(verdict.gaps[-1].why)

    def note(self, path: str, decoders: tuple[str, ...], why: Why) -> None:
        """Note what was not read."""
        self._unread.append(Unread(path=path, decoders=decoders, why=why))

    def finish(self) -> Scanned:
        """Return all that was found."""
        return Scanned(
            places=tuple(sorted(self._places, key=lambda it: (it.path, it.decoders))),
            unread=tuple(sorted(self._unread, key=lambda it: (it.path, it.decoders, it.why))),
            num_files=self._num_files,
            num_bytes=self._num_bytes,
        )

    def _verdict(self, data: Data) -> Verdict:
        digest = digest_of(data, hashlib.sha256())
        known = self._shelf.get(digest)
        if known is not None:
            return known
        verdict = find_keys(data, digest, matcher=self._matcher, meter=self._meter)
        # Another time there may be more of it.
        if all(gap.why != "time" for gap in verdict.gaps) and not self._meter.is_spent:
            self._shelf.put(digest, verdict)
        return verdict


def find_keys(data: Data, digest: bytes, *, matcher: Matches, meter: Meter) -> Verdict:
    """Return the keys in a content, whose sha256 is known, and in all that it can be decoded to."""
    hits: list[Hit] = []
    gaps: list[Gap] = []
    before = meter.file_bytes
    try:
        for piece in unfold(data, meter):
            if isinstance(piece, Gap):
                gaps.append(piece)
            elif found := _match(piece, matcher, meter):
                is_whole = piece.data is data
                excerpt = digest if is_whole else digest_of(piece.data, hashlib.sha256())
                keys = _packed(found)
                hits.append(Hit(decoders=piece.decoders, keys=keys, excerpt=excerpt.hex()))
    except SpentError as error:
        gaps.append(Gap(decoders=(), why=error.why))
    num_bytes = len(data) + meter.file_bytes - before
    return Verdict(hits=tuple(hits), gaps=tuple(gaps), num_bytes=num_bytes)


def _match(piece: Piece, matcher: Matches, meter: Meter) -> frozenset[int]:
    if isinstance(piece.data, bytes) and len(piece.data) <= _WINDOW_BYTES:
        return matcher.match(piece.data, piece.form)
    found: set[int] = set()
    for window in _windows_of(piece):
        meter.check()
        found |= matcher.match(window, piece.form)
    return frozenset(found)


def _windows_of(piece: Piece) -> Iterator[bytes]:
    """Yield a long piece in parts that overlap; code in whole lines, however long one is."""
    if piece.form != "code":
        parts = windows(piece.data, size=_WINDOW_BYTES, overlap=_OVERLAP_BYTES)
        yield from (window for _, window in parts)
        return
    data, start = piece.data, 0
    while start < len(data):
        last = data.rfind(b"\n", start, start + _WINDOW_BYTES)
        end = (last if last >= 0 else data.find(b"\n", start)) + 1 or len(data)
        yield data[start:end]
        start = end


def _packed(found: frozenset[int]) -> bytes:
    return np.array(sorted(found), dtype=np.uint64).tobytes()
