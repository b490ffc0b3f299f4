"""Keep Episodes in Parquet, with what the trainer made of each; read them back as they were."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.agent.schemas import Tool
from pipeline.task.files import staged
from trainer.records import (
    Episode,
    Experts,
    Finding,
    Flags,
    Ids,
    Reply,
    Segment,
    Target,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA_VERSION = 2
VERSION_KEY = b"regrow.episodes"
# A reader holds one group at a time.
ROWS_PER_GROUP = 8


class EpisodeError(ValueError):
    """A file of Episodes is not as it was written; one line with file, found, expected."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """An Episode with what the trainer made of it: one row."""

    # Of the optimizer, from 0.
    step: int
    episode: Episode
    # None where nothing was learnt.
    advantage: float | None
    findings: tuple[Finding, ...]
    # By number of the Segment.
    targets: dict[int, tuple[Target, ...]]


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Write a file of Entries, whole or not at all.

    Raises:
        OSError: the disk is full or broken.
    """
    table = pa.Table.from_pylist([_row(entry) for entry in entries], schema=_SCHEMA)
    with staged(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            row_group_size=ROWS_PER_GROUP,
            write_page_checksum=True,
        )


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield the Entries of a file; the tokens of each Reply are held to their sha256.

    Raises:
        EpisodeError: it is missing, damaged, of another version, or tokens were changed.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            _check_schema(path, file.schema_arrow)
            groups = (file.read_row_group(number) for number in range(file.num_row_groups))
            yield from (_entry(row, path=path) for group in groups for row in group.to_pylist())
    except FileNotFoundError:
        raise EpisodeError(f"{path}: no such file, expected Episodes") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise EpisodeError(
            f"{path}: no whole Parquet file ({reason}), expected Episodes"
        ) from error


def _check_schema(path: Path, schema: pa.Schema) -> None:
    found = (schema.metadata or {}).get(VERSION_KEY, b"none").decode(errors="replace")
    if found != str(SCHEMA_VERSION):
        raise EpisodeError(f"{path}: version {found} of Episodes, expected {SCHEMA_VERSION}")
    if not schema.equals(_SCHEMA):
        raise EpisodeError(f"{path}: columns are not those of version {SCHEMA_VERSION} of Episodes")


_TEXT, _INT, _LIST = pa.string(), pa.int64(), pa.list_


def _struct(**columns: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in columns.items()])


_TOOL = _struct(name=_TEXT, description=_TEXT, schema=_TEXT)
# Arguments, schemas and facts are JSON: each has keys of its own.
_CALL = _struct(name=_TEXT, arguments=_TEXT, raw=_TEXT, error=_TEXT, start=_INT, end=_INT)
_RESULT = _struct(ok=pa.bool_(), text=_TEXT, is_fault=pa.bool_())
_REPLY = _struct(
    header=_INT,
    start=_INT,
    end=_INT,
    text=_TEXT,
    calls=_LIST(_CALL),
    results=_LIST(_RESULT),
    stop=_TEXT,
    version=_INT,
    # Of the sampled ids, as little-endian int64.
    sha256=_TEXT,
)
_TARGET = _struct(reply=_INT, kind=_TEXT, hint_ids=_LIST(_INT), hint=_TEXT, start=_INT, end=_INT)
_SEGMENT = _struct(
    ids=_LIST(_INT),
    sampled=_LIST(pa.bool_()),
    logprobs=_LIST(pa.float32()),
    replies=_LIST(_REPLY),
    # Little-endian int16, in the order of the shape; null where the choice was free.
    experts=_struct(shape=_LIST(_INT), data=pa.binary()),
    targets=_LIST(_TARGET),
)
_FINDING = _struct(
    segment=_INT,
    reply=_INT,
    kind=_TEXT,
    start=_INT,
    end=_INT,
    evidence=_TEXT,
    severity=pa.float64(),
    facts=_TEXT,
)
_SCHEMA = pa.schema(
    _struct(
        # In each row too: what loads several files as one table drops the metadata.
        schema_version=_INT,
        step=_INT,
        id=_TEXT,
        group=_TEXT,
        number=_INT,
        prompt=_TEXT,
        ending=_TEXT,
        reward=pa.float64(),
        advantage=pa.float64(),
        verdict=_TEXT,
        detail=_TEXT,
        patch=_TEXT,
        monitored=_TEXT,
        seconds=pa.float64(),
        tools=_LIST(_TOOL),
        segments=_LIST(_SEGMENT),
        findings=_LIST(_FINDING),
    ),
    metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()},
)
_JSON = {"arguments", "schema", "facts"}


def _row(entry: Entry) -> dict[str, Any]:
    episode = entry.episode
    return _plain(episode) | {
        "schema_version": SCHEMA_VERSION,
        "step": entry.step,
        "advantage": entry.advantage,
        "tools": [_plain(tool) for tool in episode.tools],
        "segments": [
            _segment_row(segment, entry.targets.get(number, ()))
            for number, segment in enumerate(episode.segments)
        ],
        "findings": [_plain(finding) for finding in entry.findings],
    }


def _segment_row(segment: Segment, targets: tuple[Target, ...]) -> dict[str, Any]:
    return _plain(segment) | {
        "replies": [
            _plain(reply)
            | {
                "calls": [_plain(call) for call in reply.calls],
                "results": [_plain(result) for result in reply.results],
                "sha256": _sha256(segment.ids[reply.start : reply.end]),
            }
            for reply in segment.replies
        ],
        "targets": [_plain(target) for target in targets],
        "experts": _experts_row(segment.experts),
    }


def _experts_row(experts: Experts | None) -> dict[str, Any] | None:
    if experts is None:
        return None
    return {"shape": experts.shape, "data": experts.astype("<i2").tobytes()}


def _plain(record: "DataclassInstance") -> dict[str, Any]:
    """Return the fields of a record, each as its column holds it."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: object) -> object:
    if name in _JSON:
        return json.dumps(value)
    if isinstance(value, str):
        # A lone surrogate, which no column can hold, becomes its escape.
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _entry(row: dict[str, Any], *, path: Path) -> Entry:
    del row["schema_version"]
    segments = row.pop("segments")
    targets = {
        number: tuple(_target(it) for it in segment.pop("targets"))
        for number, segment in enumerate(segments)
    }
    step, advantage = row.pop("step"), row.pop("advantage")
    findings = tuple(Finding(**_parsed(it)) for it in row.pop("findings"))
    name = f"{path}: episode {row['id']}"
    episode = Episode(
        **row
        | {
            "tools": tuple(Tool(**_parsed(it)) for it in row["tools"]),
            "segments": tuple(
                _segment(it, name=f"{name}, segment {number}") for number, it in enumerate(segments)
            ),
        }
    )
    return Entry(
        step=step,
        episode=episode,
        advantage=advantage,
        findings=findings,
        targets={number: some for number, some in targets.items() if some},
    )


def _segment(row: dict[str, Any], *, name: str) -> Segment:
    ids = _ids(row["ids"])
    return Segment(
        ids=ids,
        sampled=_flags(row["sampled"]),
        logprobs=np.array(row["logprobs"], np.float32),
        replies=tuple(
            _reply(it, ids, name=f"{name}, reply {number}")
            for number, it in enumerate(row["replies"])
        ),
        experts=_experts(row["experts"]),
    )


def _experts(row: dict[str, Any] | None) -> Experts | None:
    if row is None:
        return None
    return np.frombuffer(row["data"], "<i2").reshape(row["shape"]).astype(np.int16)


def _reply(row: dict[str, Any], ids: Ids, *, name: str) -> Reply:
    found, expected = _sha256(ids[row["start"] : row["end"]]), row.pop("sha256")
    if found != expected:
        raise EpisodeError(f"{name}: its tokens have sha256 {found}, expected {expected}")
    calls = tuple(ToolCall(**_parsed(it)) for it in row["calls"])
    results = tuple(ToolResult(**it) for it in row["results"])
    return Reply(**row | {"calls": calls, "results": results})


def _target(row: dict[str, Any]) -> Target:
    return Target(**row | {"hint_ids": _ids(row["hint_ids"])})


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: json.loads(it) if name in _JSON else it for name, it in row.items()}


def _ids(values: list[int]) -> Ids:
    return np.array(values, np.int64)


def _flags(values: list[bool]) -> Flags:
    return np.array(values, np.bool_)


def _sha256(ids: Ids) -> str:
    return hashlib.sha256(ids.astype("<i8").tobytes()).hexdigest()
