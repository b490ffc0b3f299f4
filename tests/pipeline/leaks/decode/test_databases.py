"""All tables of a database are read, and nothing of it is run."""

import json
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

from tests.pipeline.leaks.planted import SECRET, gaps_of, texts_of, verdict_on, ways_to_body


def database(path: Path, *statements: tuple[str, tuple[object, ...]]) -> bytes:
    connection = sqlite3.connect(path)
    with connection:
        for statement, values in statements:
            connection.execute(statement, values)
    connection.close()
    return path.read_bytes()


def test_texts_and_blobs_of_every_table_are_read(tmp_path: Path) -> None:
    data = database(
        tmp_path / "a.db",
        ('CREATE TABLE "odd ""name" (id INTEGER, body TEXT)', ()),
        ('INSERT INTO "odd ""name" VALUES (1, ?)', (SECRET.decode(),)),
        ("CREATE TABLE packed (body BLOB)", ()),
        ("INSERT INTO packed VALUES (?)", (zlib.compress(SECRET * 99),)),
    )
    ways = ways_to_body(verdict_on(data))
    assert ('sqlite:odd "name.body',) in ways
    assert any(way[:1] == ("sqlite:packed.body",) and len(way) == 2 for way in ways)


def test_a_text_that_fills_pages_comes_out_in_one_piece(tmp_path: Path) -> None:
    text = "\n".join(str(number) for number in range(90_000)) + "\n" + SECRET.decode()
    data = database(
        tmp_path / "a.db",
        ("CREATE TABLE notes (body TEXT)", ()),
        ("INSERT INTO notes VALUES (?)", (text,)),
    )
    assert text.encode() in texts_of(data)


def test_what_was_deleted_from_a_database_is_still_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database(
        path,
        ("CREATE TABLE notes (body TEXT)", ()),
        ("INSERT INTO notes VALUES (?)", (SECRET.decode(),)),
    )
    data = database(path, ("PRAGMA secure_delete = OFF", ()), ("DELETE FROM notes", ()))
    (hit,) = verdict_on(data).hits
    assert hit.decoders == ("sqlite",)


def test_a_broken_database_is_told_and_its_bytes_are_read(tmp_path: Path) -> None:
    data = bytearray(
        database(
            tmp_path / "a.db",
            ("CREATE TABLE notes (body TEXT)", ()),
            ("INSERT INTO notes VALUES (?)", (SECRET.decode(),)),
        )
    )
    data[100:200] = b"\xff" * 100
    verdict = verdict_on(bytes(data))
    assert gaps_of(verdict) == [(("sqlite",), "broken")]
    assert ways_to_body(verdict) == [("sqlite",)]


def test_a_table_that_needs_a_module_we_lack_hides_nothing(tmp_path: Path) -> None:
    data = database(
        tmp_path / "a.db",
        ("CREATE TABLE notes (body TEXT)", ()),
        ("INSERT INTO notes VALUES (?)", (SECRET.decode(),)),
        ("PRAGMA writable_schema = ON", ()),
        (
            "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0, ?)",
            ("CREATE VIRTUAL TABLE odd USING nobody_has_it(x)",),
        ),
    )
    verdict = verdict_on(data)
    assert verdict.gaps == ()
    assert ("sqlite:notes.body",) in ways_to_body(verdict)


def test_the_cache_of_mypy_gives_its_signatures_away(tmp_path: Path) -> None:
    (tmp_path / "units.py").write_text(
        "def measure_furlongs(distance: float, rounding_places: int) -> float:\n    return 1.0\n"
    )
    options = ["--cache-dir", "cache", "--sqlite-cache", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, "units.py"]
    subprocess.run(command, cwd=tmp_path, check=True)
    shards = [path.read_bytes() for path in tmp_path.glob("cache/*/cache*.db")]
    texts = [text for data in shards for text in texts_of(data) if b"rounding_places" in text]
    assert any(b"measure_furlongs" in text for text in texts)


def test_an_endless_row_ends_within_the_budget(tmp_path: Path) -> None:
    """A view could compute for ever; only tables are asked."""
    endless = "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) "
    data = database(
        tmp_path / "a.db",
        (endless + "SELECT * FROM n", ()),
        ("CREATE TABLE notes (body TEXT)", ()),
        ("INSERT INTO notes VALUES (?)", (json.dumps(SECRET.decode()),)),
    )
    assert ("sqlite:notes.body", "escapes") in ways_to_body(verdict_on(data))
