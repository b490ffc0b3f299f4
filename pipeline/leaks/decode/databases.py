"""Read all tables of SQLite databases: mypy's cache, coverage's data, notebooks' histories."""

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.leaks.budget import Meter, SpentError
from pipeline.leaks.decode.growing import CHUNK_BYTES
from pipeline.leaks.decode.piece import Data, Gap, Inner

MAGIC = b"SQLite format 3\0"
# Smaller values are joined, so that a table of words is not matched word by word.
_OWN_BYTES = 2**12
_JOINED_BYTES = 2**20
# Steps of SQLite's machine between two looks at the clock.
_STEPS = 100_000
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


def database_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the texts and blobs of every table, column by column, and the file as it is.

    In the file itself there may be what was deleted from it.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    # Not a data base that somebody else has open: nothing is locked, nothing else is looked at.
    with tempfile.TemporaryDirectory(prefix="regrow-leaks-") as folder:
        path = Path(folder, "copy.sqlite")
        with path.open("wb") as file:
            for start in range(0, len(data), CHUNK_BYTES):
                file.write(data[start : start + CHUNK_BYTES])
        yield from _rows(path, meter)
    yield Inner(label="sqlite", data=data, form="binary")


def _rows(path: Path, meter: Meter) -> Iterator[Inner | Gap]:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        _guard(connection, meter)
        for (name,) in connection.execute(_TABLES).fetchall():
            yield from _table(connection, name, meter)
    except sqlite3.Error:
        yield Gap(decoders=("sqlite",), why="broken")
    finally:
        connection.close()
    meter.check()


def _guard(connection: sqlite3.Connection, meter: Meter) -> None:
    """Let nothing that the data base says be run, and nothing run for ever."""

    def is_over() -> bool:
        try:
            meter.check()
        except SpentError:
            return True
        return False

    connection.set_progress_handler(is_over, _STEPS)
    connection.text_factory = bytes
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _table(connection: sqlite3.Connection, raw_name: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    name = raw_name.decode("utf-8", "replace")
    rows = _select(connection, name)
    if rows is None:
        return
    labels = [f"sqlite:{name}.{column[0]}" for column in rows.description]
    columns = [bytearray() for _ in labels]
    for row in rows:
        for label, joined, value in zip(labels, columns, row, strict=True):
            if isinstance(value, bytes):
                meter.count_decoded(len(value))
                yield from _value(label, value, joined)
    for label, joined in zip(labels, columns, strict=True):
        if joined:
            yield Inner(label=label, data=bytes(joined))


def _value(label: str, value: bytes, joined: bytearray) -> Iterator[Inner]:
    """Yield a large value, or add it to the small ones and yield them once they are many."""
    if len(value) >= _OWN_BYTES:
        yield Inner(label=label, data=value)
        return
    joined.extend(value + b"\n")
    if len(joined) >= _JOINED_BYTES:
        yield Inner(label=label, data=bytes(joined))
        joined.clear()


def _select(connection: sqlite3.Connection, name: str) -> sqlite3.Cursor | None:
    """Ask for all of a table; None for a virtual one, which shows what plain ones hold."""
    quoted = name.replace('"', '""')
    try:
        return connection.execute(f'SELECT * FROM "{quoted}"')  # noqa: S608  quoted as SQL asks
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            return None
        raise
