import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pipeline.agent.schemas import Tool
from tests.trainer.samples import episode, segment, target
from trainer.episode_shards import Entry, EpisodeError, read_entries, write_entries
from trainer.records import Episode, Finding, Reply, Segment, ToolCall, ToolResult


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, it.name), getattr(other, it.name)) for it in fields(one)
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(it, other[key]) for key, it in one.items())
    return one == other and type(one) is type(other)


def entry(made: Episode, **values: Any) -> Entry:
    return Entry(
        **{"step": 3, "episode": made, "advantage": 0.5, "findings": (), "targets": {}} | values
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
NUMBER = st.integers(0, 2**40)
RESULT = st.builds(ToolResult, ok=st.booleans(), text=TEXT, is_fault=st.booleans())
CALL = st.builds(
    ToolCall,
    name=TEXT,
    arguments=st.none() | OBJECT,
    raw=TEXT,
    error=TEXT,
    start=NUMBER,
    end=NUMBER,
)
FINDING = st.builds(
    Finding,
    segment=NUMBER,
    reply=NUMBER,
    kind=TEXT,
    start=NUMBER,
    end=NUMBER,
    evidence=TEXT,
    severity=st.floats(0, 1),
    facts=OBJECT,
)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    length = draw(st.integers(1, 12))
    start = draw(st.integers(0, length))
    reply = Reply(
        header=0,
        start=start,
        end=length,
        text=draw(TEXT),
        calls=tuple(draw(st.lists(CALL, max_size=2))),
        results=tuple(draw(st.lists(RESULT, max_size=2))),
        stop=draw(st.sampled_from(["end", "length"])),
        version=draw(NUMBER),
    )
    floats = st.floats(-100, 0, width=32)
    return Segment(
        ids=draw(hnp.arrays(np.int64, length, elements=st.integers(0, 2**40))),
        sampled=draw(hnp.arrays(np.bool_, length)),
        logprobs=draw(hnp.arrays(np.float32, length, elements=floats)),
        replies=(reply,),
        experts=draw(st.none() | hnp.arrays(np.int16, (length, 2, 3))),
    )


@given(
    found=st.lists(segments(), max_size=2),
    findings=st.lists(FINDING, max_size=2),
    reward=st.none() | st.floats(-1, 1),
    tools=st.lists(st.builds(Tool, name=TEXT, description=TEXT, schema=OBJECT), max_size=2),
)
@settings(deadline=None)
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[Segment],
    findings: list[Finding],
    reward: float | None,
    tools: list[Tool],
) -> None:
    path = tmp_path_factory.mktemp("episodes") / "e.parquet"
    made = episode("0-a", 1, reward, segments=found)
    made = Episode(
        **{it.name: getattr(made, it.name) for it in fields(made)} | {"tools": tuple(tools)}
    )
    written = entry(made, advantage=reward, findings=tuple(findings))
    write_entries(path, [written])
    assert same(next(read_entries(path)), written)


def taught() -> Entry:
    one = segment(0, spans=[(5, 9), (14, 20)], length=20)
    return entry(episode("0-a", 0, 1.0, segments=[one]), targets={0: (target(one, 1),)})


def test_hints_are_kept_with_their_tokens(tmp_path: Path) -> None:
    write_entries(tmp_path / "e.parquet", [taught()])
    (found,) = read_entries(tmp_path / "e.parquet")
    assert found.targets[0][0].hint == "Tools: f."
    assert found.targets[0][0].hint_ids.tolist() == [1, 2, 3, 4]


CHANGED = r"e\.parquet: episode 0-a\.0, segment 0, reply 1: its tokens have sha256 \w+, expected"


def test_a_token_that_was_changed_is_found_and_its_reply_named(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    write_entries(path, [taught()])
    rows = pq.read_table(path).to_pylist()
    rows[0]["segments"][0]["ids"][15] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    with pytest.raises(EpisodeError, match=CHANGED):
        list(read_entries(path))


def test_a_file_that_is_no_shard_of_episodes_is_named(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match="gone: no such file"):
        list(read_entries(tmp_path / "gone"))
    (tmp_path / "text").write_text("no")
    with pytest.raises(EpisodeError, match="text: no whole Parquet file"):
        list(read_entries(tmp_path / "text"))
    write_entries(tmp_path / "old", [taught()])
    pq.write_table(pq.read_table(tmp_path / "old").replace_schema_metadata(), tmp_path / "old")
    with pytest.raises(EpisodeError, match="old: version none of Episodes, expected 2"):
        list(read_entries(tmp_path / "old"))


def test_a_file_without_one_of_the_columns_is_named(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    write_entries(path, [taught()])
    pq.write_table(pq.read_table(path).drop_columns("detail"), path)
    with pytest.raises(EpisodeError, match=r"e\.parquet: columns are not those of version 2"):
        list(read_entries(path))


def test_a_flipped_bit_is_found_in_whatever_column_it_is(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    write_entries(path, [taught()])
    whole, group = path.read_bytes(), pq.read_metadata(path).row_group(0)
    for column in (group.column(number) for number in range(group.num_columns)):
        first = column.dictionary_page_offset or column.data_page_offset
        spoilt = bytearray(whole)
        spoilt[first + column.total_compressed_size - 1] ^= 1
        path.write_bytes(spoilt)
        with pytest.raises(EpisodeError, match=r"e\.parquet: no whole Parquet file") as caught:
            list(read_entries(path))
        assert "\n" not in str(caught.value), column.path_in_schema


def test_duckdb_reads_hints_and_tokens(tmp_path: Path) -> None:
    write_entries(tmp_path / "e.parquet", [taught()])
    found = duckdb.sql(
        "SELECT schema_version, step, reward, advantage, segments[1].targets[1].hint,"
        ' segments[1].replies[2]."end", len(segments[1].ids), list_sum(segments[1].sampled::INT[])'
        f" FROM '{tmp_path}/*.parquet'"
    ).fetchall()
    assert found == [(2, 3, 1.0, 0.5, "Tools: f.", 20, 20, 10)]


def test_hugging_face_datasets_loads_every_column(tmp_path: Path) -> None:
    write_entries(tmp_path / "e.parquet", [taught()])
    code = (
        "import datasets, sys\n"
        "rows = datasets.load_dataset('parquet', data_files=sys.argv[1] + '/*.parquet',"
        " split='train', cache_dir=sys.argv[1] + '/cache')\n"
        "print(rows.num_rows, *rows.column_names)\n"
        "print(rows[0]['segments'][0]['targets'][0]['hint'])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    columns = pq.read_schema(tmp_path / "e.parquet").names
    assert shown.splitlines() == [" ".join(["1", *columns]), "Tools: f."]
