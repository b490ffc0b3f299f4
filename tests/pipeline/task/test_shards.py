import dataclasses
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pipeline.task.manifest import ShardError, describe, read_manifest, write_manifest
from pipeline.task.record import SCHEMA_VERSION, FailToPass, Quarantined, Task
from pipeline.task.reject import RejectRow
from pipeline.task.schema import from_row, schema_of, to_row
from pipeline.task.shards import index_tasks, read_rejects, read_task, read_tasks, write_shards
from tests.pipeline.records import blank, values


def tasks(count: int, text: str = "x") -> list[Task]:
    targets = (dataclasses.replace(blank(FailToPass), id="t.py::a[ü\n']"),)
    base = blank(Task)
    evidence = dataclasses.replace(base.evidence, fail_to_pass=targets)
    deletion = dataclasses.replace(base.deletion, patch=text)
    return [
        dataclasses.replace(base, id=f"toolz-{number}", evidence=evidence, deletion=deletion)
        for number in range(count)
    ]


def publish(run: Path, records: list[Task], num_shards: int) -> None:
    files = write_shards(run, "tasks", records, num_shards=num_shards)
    files += write_shards(run, "rejects", [])
    write_manifest(run, files, config={"seed": 0})


def shard_names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "tasks").iterdir())


def ids(run: Path) -> list[str]:
    return sorted(task.id for task in read_tasks(run))


@given(values(Task))
@settings(max_examples=60, deadline=None)
def test_any_task_comes_back_from_a_column_file_as_it_was(task: Task) -> None:
    table = pa.Table.from_pylist([to_row(task)], schema=schema_of(Task))
    assert from_row(Task, table.to_pylist()[0]) == task


def test_lone_surrogates_are_kept_as_their_escapes() -> None:
    row = to_row(Quarantined(id="a\udc80b", reason="flaky"))
    assert row == {"id": "a\\udc80b", "reason": "flaky"}


def test_columns_of_empty_lists_keep_their_type(tmp_path: Path) -> None:
    publish(tmp_path, [blank(Task)], 1)
    found = pq.read_schema(tmp_path / "tasks" / "tasks-00000-of-00001.parquet")
    assert found.equals(schema_of(Task), check_metadata=False)
    assert found.metadata[b"regrow.schema_version"] == str(SCHEMA_VERSION).encode()
    assert not any(pa.types.is_map(kind) or pa.types.is_null(kind) for kind in found.types)


def test_a_field_that_no_column_holds_is_a_type_error() -> None:
    cls = dataclasses.make_dataclass("Odd", [("when", complex)])
    with pytest.raises(TypeError, match="complex"):
        schema_of(cls)


def test_the_same_records_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    records = tasks(100)
    publish(tmp_path / "one", records, 3)
    random.Random(0).shuffle(records)
    publish(tmp_path / "two", records, 3)
    assert len(shard_names(tmp_path / "one")) == 3
    for path in (tmp_path / "one").rglob("*.*"):
        assert (
            path.read_bytes()
            == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
        )


def test_rejects_come_back_with_equal_ones_kept_apart(tmp_path: Path) -> None:
    row = RejectRow(
        schema_version=1, repo="r", subject="s", stage="trace", reason="empty", detail=""
    )
    files = write_shards(tmp_path, "rejects", [row, row])
    write_manifest(tmp_path, files, config={})
    assert list(read_rejects(tmp_path)) == [row, row]


def test_two_tasks_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="toolz-0"):
        write_shards(tmp_path, "tasks", tasks(1) * 2)


def test_pyarrow_and_duckdb_read_every_column(tmp_path: Path) -> None:
    publish(tmp_path, tasks(40), 2)
    columns = [field.name for field in dataclasses.fields(Task)]
    table = pyarrow.dataset.dataset(tmp_path / "tasks").to_table()
    assert (table.num_rows, table.column_names) == (40, columns)

    found = duckdb.sql(
        "SELECT id, unnest(evidence.fail_to_pass).id AS target "
        f"FROM '{tmp_path}/tasks/*.parquet' ORDER BY id LIMIT 1"
    ).fetchall()
    assert found == [("toolz-0", "t.py::a[ü\n']")]


def test_hugging_face_datasets_loads_every_column(tmp_path: Path) -> None:
    publish(tmp_path, tasks(40), 2)
    code = (
        "import datasets, sys\n"
        "rows = datasets.load_dataset('parquet', data_files=sys.argv[1] + '/tasks/*.parquet',"
        " split='train', cache_dir=sys.argv[2])\n"
        "print(rows.num_rows, *rows.column_names)\n"
        "print(ascii(rows[0]['evidence']['fail_to_pass'][0]['id']))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "cache")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    columns = [field.name for field in dataclasses.fields(Task)]
    assert shown.splitlines() == [" ".join(["40", *columns]), ascii("t.py::a[ü\n']")]


def test_an_empty_run_has_one_empty_shard_of_each_kind(tmp_path: Path) -> None:
    publish(tmp_path, [], 1)
    assert list(read_tasks(tmp_path)) == list(read_rejects(tmp_path)) == []
    assert [file.num_rows for file in read_manifest(tmp_path).files] == [0, 0]


def test_shards_of_512_rows_are_the_default(tmp_path: Path) -> None:
    assert len(write_shards(tmp_path, "tasks", tasks(513))) == 2


def test_a_task_is_read_alone_from_its_place(tmp_path: Path) -> None:
    records = tasks(100)
    publish(tmp_path, records, 3)
    places = index_tasks(tmp_path)
    assert [read_task(places[task.id]) for task in records] == records


def test_new_shards_change_nothing_before_the_manifest_names_them(tmp_path: Path) -> None:
    publish(tmp_path, tasks(9), 2)
    before = ids(tmp_path)
    write_shards(tmp_path, "tasks", tasks(5, "new"), num_shards=2)
    assert ids(tmp_path) == before
    publish(tmp_path, tasks(5, "newer"), 1)
    assert {task.deletion.patch for task in read_tasks(tmp_path)} == {"newer"}
    assert shard_names(tmp_path) == ["tasks-00000-of-00001.parquet"]


def test_a_crash_between_manifest_and_renames_leaves_the_new_run(tmp_path: Path) -> None:
    done, crashed = tmp_path / "done", tmp_path / "crashed"
    publish(done, tasks(9), 2)
    files = write_shards(done, "tasks", tasks(5, "new"), num_shards=2)
    shutil.copytree(done, crashed)
    write_manifest(done, files, config={})
    shutil.copy(done / "manifest.json", crashed)
    assert list(read_tasks(crashed)) == list(read_tasks(done))
    write_manifest(crashed, files, config={})
    assert shard_names(crashed) == shard_names(done)


def test_a_new_run_removes_what_the_old_one_named_and_nothing_else(tmp_path: Path) -> None:
    old = [f"snapshots/{'a' * 64}.tar.zst", f"transcripts/toolz-{'0' * 12}.jsonl"]
    new = [f"snapshots/{'b' * 64}.tar.zst", f"transcripts/toolz-{'1' * 12}.jsonl"]
    foreign = ["snapshots/mine.tar.zst", "transcripts/notes.jsonl", "done/1.json", "notes.txt"]
    for path in (*old, *new, *foreign):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
    for paths in (old + new, new, []):
        files = [*write_shards(tmp_path, "tasks", []), *(describe(tmp_path, it) for it in paths)]
        write_manifest(tmp_path, files, config={})
        found = [it.relative_to(tmp_path).as_posix() for it in tmp_path.rglob("*") if it.is_file()]
        expected = {"manifest.json", files[0].path, *foreign, *paths}
        assert set(found) == expected


WRITER = """
import itertools, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_shards import publish, tasks
for turn in itertools.count(1):
    publish(Path(sys.argv[1]), tasks(40, "old" if turn % 2 else "new"), 2 + turn % 2)
    print(turn, flush=True)
"""


def test_a_killed_writer_leaves_one_whole_run(tmp_path: Path) -> None:
    code = WRITER.format(folder=str(Path(__file__).parent))
    draw = random.Random(0)
    for _ in range(4):
        command = [sys.executable, "-c", code, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline()
            time.sleep(draw.uniform(0, 0.1))
            writer.send_signal(signal.SIGKILL)
        found = [task.deletion.patch for task in read_tasks(tmp_path)]
        assert len(found) == 40
        assert len(set(found)) == 1
    publish(tmp_path, tasks(40), 4)
    assert shard_names(tmp_path) == [f"tasks-{number:05}-of-00004.parquet" for number in range(4)]


def test_files_of_any_kind_can_be_named_with_their_hash(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    entry = describe(tmp_path, "note.txt")
    write_manifest(tmp_path, [entry], config={"seed": 3})
    assert read_manifest(tmp_path).files == (entry,)
    assert read_manifest(tmp_path).config == {"seed": 3}
    assert entry.num_bytes == 5


def edited(run: Path, **changes: object) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "manifest.json").unlink(), "manifest.json: no such file"),
        (lambda run: (run / "manifest.json").write_text('{"a'), "manifest.json: not JSON"),
        (
            lambda run: (run / "manifest.json").write_text("[]"),
            f"schema version None, expected {SCHEMA_VERSION}",
        ),
        (
            lambda run: edited(run, schema_version=99),
            f"schema version 99, expected {SCHEMA_VERSION}",
        ),
        (lambda run: edited(run, files=None), "no list `files`"),
        (lambda run: edited(run, files=[{"path": 3}]), "expected path, sha256"),
        (
            lambda run: edited(
                run, files=[{"path": "../x", "sha256": "", "num_bytes": 0, "num_rows": 0}]
            ),
            "expected path, sha256",
        ),
        (lambda run: next((run / "tasks").iterdir()).unlink(), "no such file, expected sha256"),
        (lambda run: next((run / "tasks").iterdir()).write_bytes(b""), "sha256 e3b0c4.*, expected"),
    ],
)
def test_a_spoilt_run_is_refused_in_one_line(tmp_path: Path, spoil: Any, message: str) -> None:
    publish(tmp_path, tasks(3), 1)
    spoil(tmp_path)
    with pytest.raises(ShardError, match=message) as caught:
        read_tasks(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_shard_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    publish(tmp_path, tasks(3), 1)
    path = tmp_path / "tasks" / "tasks-00000-of-00001.parquet"
    table = pq.read_table(path).replace_schema_metadata({"regrow.schema_version": "1"})
    pq.write_table(table, path)
    write_manifest(tmp_path, [describe(tmp_path, f"tasks/{path.name}", num_rows=3)], config={})
    with pytest.raises(ShardError, match=f"schema version 1, expected {SCHEMA_VERSION}"):
        read_tasks(tmp_path)
