"""Keep Tasks and RejectRows in Parquet shards whose bytes depend on the rows alone."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.task.canonical import content_id
from pipeline.task.files import write_whole
from pipeline.task.manifest import RunFile, ShardError, pending_path, read_manifest, verified
from pipeline.task.record import SCHEMA_VERSION, Task
from pipeline.task.reject import RejectRow
from pipeline.task.schema import VERSION_KEY, Record, from_row, schema_of, to_row

ShardName = Literal["tasks", "rejects", "attempts"]

RECORDS: dict[str, type] = {"tasks": Task, "rejects": RejectRow}
ROWS_PER_SHARD = 512
# A reader holds one group at a time, and the trainer reads one to get at one row.
ROWS_PER_GROUP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """Where the row of one Task is.

    Example: `TaskPlace(path=Path("…/tasks-00000-of-00001.parquet"), group=2, row=5)`.
    """

    path: Path
    # Row group of the file, from 0.
    group: int
    # Row of the group, from 0.
    row: int


def write_shards(
    run_folder: Path,
    name: Literal["tasks", "rejects"],
    records: Iterable[Task | RejectRow],
    *,
    num_shards: int | None = None,
) -> tuple[RunFile, ...]:
    """Write the records of one kind and return what `write_manifest` is to be told of them.

    A record's shard and place follow from its id, so the same records in any order give the same
    bytes. The new shards wait beside the old ones, which stay readable, until the manifest names
    them. Without `num_shards` there is one for every 512 rows, and at least one.

    Raises:
        ValueError: two Tasks have one id.
        OSError: the disk is full or broken.
    """
    rows = sorted(((_id_of(record), record) for record in records), key=lambda row: row[0])
    if name == "tasks":
        check_unique("Tasks", [row_id for row_id, _ in rows])
    count = num_shards or max(1, -(-len(rows) // ROWS_PER_SHARD))
    shards: list[list[Task | RejectRow]] = [[] for _ in range(count)]
    for row_id, record in rows:
        shards[shard_of(row_id, count)].append(record)
    return tuple(
        write_shard(run_folder, shard_name(name, number, count), RECORDS[name], shard)
        for number, shard in enumerate(shards)
    )


def read_tasks(run_folder: Path) -> Iterator[Task]:
    """Yield the Tasks of a run, one row group in memory at a time.

    Raises:
        ShardError: the manifest or a shard is not as the run's writer left it.
    """
    return _records(shard_paths(run_folder, "tasks"), Task)


def read_rejects(run_folder: Path) -> Iterator[RejectRow]:
    """Yield the rejects of a run, one row group in memory at a time.

    Raises:
        ShardError: the manifest or a shard is not as the run's writer left it.
    """
    return _records(shard_paths(run_folder, "rejects"), RejectRow)


def index_tasks(run_folder: Path) -> dict[str, TaskPlace]:
    """Return where each Task is, by id, without reading more than the ids.

    Raises:
        ShardError: the manifest or a shard is not as the run's writer left it.
    """
    return {
        row_id.as_py(): TaskPlace(path=path, group=group, row=row)
        for path in shard_paths(run_folder, "tasks")
        for group, table in _groups(path, columns=["id"])
        for row, row_id in enumerate(table.column("id"))
    }


def read_task(place: TaskPlace) -> Task:
    """Return the Task at a place that `index_tasks` gave."""
    with pq.ParquetFile(place.path) as shard:
        table = shard.read_row_group(place.group).slice(place.row, 1)
    return from_row(Task, table.to_pylist()[0])


def shard_paths(run_folder: Path, name: ShardName) -> tuple[Path, ...]:
    """Return the shards of one kind, each checked against the manifest and the schema version.

    Raises:
        ShardError: one is missing, holds something else, or is of another schema version.
    """
    files = read_manifest(run_folder).files
    paths = tuple(verified(run_folder, file) for file in files if file.path.startswith(f"{name}/"))
    for path in paths:
        _check_version(path)
    return paths


def read_shard(path: Path, cls: type[Record]) -> Iterator[Record]:
    """Yield the records of a shard that `shard_paths` gave, one row group in memory at a time."""
    for _, table in _groups(path):
        for row in table.to_pylist():
            yield from_row(cls, row)


def shard_name(name: ShardName, number: int, count: int) -> str:
    """Return the path of a shard in its run: `tasks/tasks-00000-of-00004.parquet`."""
    return f"{name}/{name}-{number:05}-of-{count:05}.parquet"


def shard_of(key: str, count: int) -> int:
    """Return which of `count` shards a key belongs to."""
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % count


def check_unique(what: str, ordered_ids: Iterable[str]) -> None:
    """Hold sorted ids to being each another.

    Raises:
        ValueError: two are the same.
    """
    for one, other in itertools.pairwise(ordered_ids):
        if one == other:
            raise ValueError(f"two {what} have the id {one!r}, expected each once")


def _id_of(record: Task | RejectRow) -> str:
    return record.id if isinstance(record, Task) else content_id(record)


def write_shard(
    run_folder: Path, path: str, cls: type[Record], records: Iterable[Record]
) -> RunFile:
    """Write records of one class, in order, to a shard that waits until a manifest names it.

    Raises:
        OSError: the disk is full or broken.
    """
    rows = [to_row(record) for record in records]
    table = pa.Table.from_pylist(rows, schema=schema_of(cls))
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd", row_group_size=ROWS_PER_GROUP)
    data = buffer.getvalue().to_pybytes()
    digest = hashlib.sha256(data).hexdigest()
    file = RunFile(path=path, sha256=digest, num_bytes=len(data), num_rows=len(rows))
    write_whole(pending_path(run_folder, file), data)
    return file


def _check_version(path: Path) -> None:
    metadata = pq.read_schema(path).metadata or {}
    found = metadata.get(VERSION_KEY, b"none").decode()
    if found != str(SCHEMA_VERSION):
        raise ShardError(f"{path}: schema version {found}, expected {SCHEMA_VERSION}")


def _records(paths: tuple[Path, ...], cls: type[Record]) -> Iterator[Record]:
    for path in paths:
        yield from read_shard(path, cls)


def _groups(path: Path, columns: list[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
    with pq.ParquetFile(path) as shard:
        for group in range(shard.num_row_groups):
            yield group, shard.read_row_group(group, columns=columns)
