"""Keep what was found in each content, so that no content is scanned twice for one Snapshot."""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.leaks.budget import Budget
from pipeline.leaks.decode.piece import Gap

# Raised by every change of what a decoder finds: verdicts of earlier ones are void then.
VERSION = 3
# Put at once, so that the disk is not waited for after every file.
_BATCH = 500
# Seconds to wait for another process that writes.
_PATIENCE_S = 30.0
_TABLE = "CREATE TABLE IF NOT EXISTS verdicts (digest BLOB PRIMARY KEY, verdict BLOB) WITHOUT ROWID"
_GET = "SELECT verdict FROM verdicts WHERE digest = ?"
_PUT = "INSERT OR REPLACE INTO verdicts VALUES (?, ?)"
_CHECK_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A piece of some content in which keys were found."""

    # Outermost first.
    decoders: tuple[str, ...]
    # The keys in order, eight bytes each: history of one file may have thousands of pieces.
    keys: bytes
    # sha256 of the piece, in hexadecimal.
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a content holds, wherever it lies."""

    hits: tuple[Hit, ...]
    gaps: tuple[Gap, ...]
    # Of the content, with all that was decoded from it.
    num_bytes: int


class Shelf:
    """The verdicts by one Matcher within one Budget."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._new: dict[bytes, Verdict] = {}

    def get(self, digest: bytes) -> Verdict | None:
        """Return the verdict on a content; None when there is none, or a torn one."""
        if digest in self._new:
            return self._new[digest]
        row = self._connection.execute(_GET, (digest,)).fetchone()
        return None if row is None else _unpack(row[0])

    def put(self, digest: bytes, verdict: Verdict) -> None:
        """Keep a verdict."""
        self._new[digest] = verdict
        if len(self._new) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is new; a cache that cannot be written is done without."""
        rows = [(digest, _pack(verdict)) for digest, verdict in self._new.items()]
        with suppress(sqlite3.Error), self._connection:
            self._connection.executemany(_PUT, rows)
        self._new.clear()


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A folder of verdicts, one file a Matcher and Budget; any number of processes may use it.

    Example: `Verdicts(cache_folder() / "verdicts")`.
    """

    # None: nothing outlasts a scan.
    folder: Path | None = None

    @contextmanager
    def shelf(self, digest: str, budget: Budget) -> Iterator[Shelf]:
        """Open the verdicts by the Matcher of a digest; a broken file is thrown away."""
        with closing(self._open(digest, budget)) as connection:
            shelf = Shelf(connection)
            yield shelf
            shelf.flush()

    def _open(self, digest: str, budget: Budget) -> sqlite3.Connection:
        if self.folder is None:
            return _connect(":memory:")
        self.folder.mkdir(parents=True, exist_ok=True)
        # What a budget kept from being read is in a verdict too.
        limits = json.dumps(asdict(budget), sort_keys=True)
        name = hashlib.sha256(f"{VERSION}\n{digest}\n{limits}".encode()).hexdigest()
        path = self.folder / f"{name}.sqlite"
        try:
            return _connect(str(path))
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            return _connect(str(path))


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE_S)
    try:
        # What a crash takes is found anew.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_TABLE)
        connection.execute(_GET, (b"",)).fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _pack(verdict: Verdict) -> bytes:
    """Return a verdict as bytes: nearly all are a single number."""
    packed = str(verdict.num_bytes).encode()
    if verdict.hits or verdict.gaps:
        plain = [
            verdict.num_bytes,
            [[hit.decoders, hit.keys.hex(), hit.excerpt] for hit in verdict.hits],
            [[gap.decoders, gap.why] for gap in verdict.gaps],
        ]
        packed = zlib.compress(json.dumps(plain, separators=(",", ":")).encode())
    return zlib.crc32(packed).to_bytes(_CHECK_BYTES, "big") + packed


def _unpack(raw: bytes) -> Verdict | None:
    check, packed = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
    if zlib.crc32(packed).to_bytes(_CHECK_BYTES, "big") != check:
        return None
    if packed.isdigit():
        return Verdict(hits=(), gaps=(), num_bytes=int(packed))
    num_bytes, hits, gaps = json.loads(zlib.decompress(packed))
    return Verdict(
        hits=tuple(
            Hit(decoders=tuple(decoders), keys=bytes.fromhex(keys), excerpt=excerpt)
            for decoders, keys, excerpt in hits
        ),
        gaps=tuple(Gap(decoders=tuple(decoders), why=why) for decoders, why in gaps),
        num_bytes=num_bytes,
    )
