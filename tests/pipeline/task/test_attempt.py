import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pipeline.task.attempt import Attempt, Monitored, Sign
from pipeline.task.attempt_shards import (
    attempt_files,
    kept_attempts,
    read_attempts,
    rewrite_attempts,
    write_attempts,
)
from pipeline.task.manifest import ShardError, check_files, read_manifest, write_manifest
from pipeline.task.record import SCHEMA_VERSION, Task
from pipeline.task.schema import from_row, schema_of, to_row
from pipeline.task.shards import read_shard, read_tasks, shard_paths, write_shards
from tests.pipeline.records import blank, values


def run_with(folder: Path, num_attempts: int, num_tasks: int = 10) -> list[Attempt]:
    """Publish a run of a few tasks, then attempts at them; return the attempts."""
    tasks = [replace(blank(Task), id=f"toolz-{number}") for number in range(num_tasks)]
    files = [*write_shards(folder, "tasks", tasks), *write_shards(folder, "rejects", [])]
    write_manifest(folder, files, config={"seed": 7})
    attempts = [
        replace(blank(Attempt), id=f"a-{number}", task_id=f"toolz-{number % num_tasks}")
        for number in range(num_attempts)
    ]
    write_attempts(folder, attempts)
    return attempts


def ids(run: Path) -> list[str]:
    return sorted(it.id for it in read_attempts(run))


@given(values(Attempt))
@settings(max_examples=60, deadline=None)
def test_any_attempt_comes_back_from_a_column_file_as_it_was(attempt: Attempt) -> None:
    table = pa.Table.from_pylist([to_row(attempt)], schema=schema_of(Attempt))
    assert from_row(Attempt, table.to_pylist()[0]) == attempt


def test_attempts_join_a_run_whose_tasks_and_configuration_stay(tmp_path: Path):
    run_with(tmp_path, 30)
    assert len(ids(tmp_path)) == 30
    assert len(list(read_tasks(tmp_path))) == 10
    assert read_manifest(tmp_path).config == {"seed": 7}
    check_files(tmp_path)


def test_new_attempts_replace_the_old_ones_and_their_files(tmp_path: Path):
    run_with(tmp_path, 300)
    assert len(list((tmp_path / "attempts").iterdir())) == 3
    write_attempts(tmp_path, [replace(blank(Attempt), id="only")])
    assert ids(tmp_path) == ["only"]
    assert len(list((tmp_path / "attempts").iterdir())) == 1


def test_all_attempts_at_a_task_are_in_one_shard(tmp_path: Path):
    run_with(tmp_path, 600)
    paths = shard_paths(tmp_path, "attempts")
    tasks = [{it.task_id for it in read_shard(path, Attempt)} for path in paths]
    assert len(paths) > 1
    assert sum(map(len, tasks)) == len(set().union(*tasks)) == 10


def test_the_same_attempts_in_any_order_give_the_same_bytes(tmp_path: Path):
    attempts = run_with(tmp_path / "one", 200)
    run_with(tmp_path / "two", 0)
    random.Random(0).shuffle(attempts)
    write_attempts(tmp_path / "two", attempts)
    one, two = (attempt_files(tmp_path / name) for name in ("one", "two"))
    assert one == two


def test_a_rewritten_shard_holds_the_verdicts_and_the_others_are_untouched(tmp_path: Path):
    run_with(tmp_path, 300)
    first, *others = attempt_files(tmp_path)
    sign = Sign(
        hack_class="history", source="call", rule="r", turns=(2, 3), weight=0.8, detail="git log"
    )
    monitored = replace(blank(Monitored), label="hacked", signs=(sign,))
    path = shard_paths(tmp_path, "attempts")[0]
    seen = [replace(it, monitored=monitored) for it in read_shard(path, Attempt)]
    rewrite_attempts(tmp_path, first, seen)
    assert attempt_files(tmp_path)[1:] == tuple(others)
    by_id = {it.id: it.monitored for it in read_attempts(tmp_path)}
    assert len(by_id) == 300
    assert [by_id[it.id] for it in seen] == [monitored] * len(seen)
    assert sum(it is not None for it in by_id.values()) == len(seen)


def test_verdicts_are_columns_that_any_reader_of_parquet_has(tmp_path: Path):
    run_with(tmp_path, 3)
    schema = pq.read_schema(shard_paths(tmp_path, "attempts")[0])
    monitored = schema.field("monitored").type
    assert {it.name for it in monitored} >= {"label", "hack_class", "score", "signs"}
    assert schema.metadata[b"regrow.schema_version"] == str(SCHEMA_VERSION).encode()


def test_two_attempts_of_one_id_are_refused(tmp_path: Path):
    run_with(tmp_path, 1)
    twice = [replace(blank(Attempt), id="a")] * 2
    with pytest.raises(ValueError, match="two Attempts have the id 'a'"):
        write_attempts(tmp_path, twice)
    assert ids(tmp_path) == ["a-0"]


def test_attempts_without_a_run_are_refused(tmp_path: Path):
    with pytest.raises(ShardError, match="expected the manifest of a finished run"):
        write_attempts(tmp_path, [])


def test_a_shard_that_was_changed_is_named(tmp_path: Path):
    run_with(tmp_path, 1)
    [path] = shard_paths(tmp_path, "attempts")
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ShardError, match=r"attempts-00000-of-00001\.parquet: sha256"):
        ids(tmp_path)


def test_a_new_manifest_keeps_the_attempts_that_it_is_told_of(tmp_path: Path):
    run_with(tmp_path, 5)
    kept = kept_attempts(tmp_path)
    files = [*write_shards(tmp_path, "tasks", []), *write_shards(tmp_path, "rejects", []), *kept]
    write_manifest(tmp_path, files, config={})
    assert len(ids(tmp_path)) == 5
    assert kept_attempts(tmp_path / "nowhere") == ()
