import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from pipeline.task.manifest import ShardError, write_manifest
from pipeline.task.record import Task
from pipeline.task.schema import from_row, to_row
from pipeline.task.shards import write_shards
from trainer.tasks import stream_tasks


def blank(hint: Any) -> Any:
    """Return an empty string, a zero, an empty tuple, or a record of such."""
    if hint in {str, int, float, bool}:
        return hint()
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is tuple:
        return ()
    return hint(**{name: blank(part) for name, part in get_type_hints(hint).items()})


def make_run(folder: Path, count: int, *, num_shards: int = 1, text: str = "") -> Path:
    row = to_row(blank(Task))
    tasks = [
        from_row(Task, row | {"id": f"t-{number}", "instructions": [{"style": "s", "text": text}]})
        for number in range(count)
    ]
    write_manifest(folder, write_shards(folder, "tasks", tasks, num_shards=num_shards), config={})
    return folder


def ids(run: Path, count: int, *, seed: int = 0, start: int = 0) -> list[str]:
    return [task.id for _, task in islice(stream_tasks(run, seed=seed, start=start), count)]


def test_every_epoch_has_each_task_once_in_another_order(tmp_path: Path) -> None:
    run = make_run(tmp_path, 20)
    found = ids(run, 40)
    assert sorted(found[:20]) == sorted(found[20:]) == sorted(f"t-{n}" for n in range(20))
    assert found[:20] != found[20:]


def test_a_stream_resumes_where_it_stopped(tmp_path: Path) -> None:
    run = make_run(tmp_path, 7)
    whole = [(position, task.id) for position, task in islice(stream_tasks(run, seed=1), 30)]
    assert [position for position, _ in whole] == list(range(30))
    for start in (0, 3, 7, 16):
        resumed = islice(stream_tasks(run, seed=1, start=start), 30 - start)
        assert [(position, task.id) for position, task in resumed] == whole[start:]


def test_the_order_follows_the_seed_and_not_the_number_of_shards(tmp_path: Path) -> None:
    one, four = make_run(tmp_path / "1", 20), make_run(tmp_path / "4", 20, num_shards=4)
    assert ids(one, 40) == ids(four, 40)
    assert ids(one, 20) != ids(one, 20, seed=1)


def test_texts_are_not_held_in_memory(tmp_path: Path) -> None:
    run = make_run(tmp_path, 200, text="x" * 100_000)
    tracemalloc.start()
    seen = sum(len(task.instructions[0].text) for _, task in islice(stream_tasks(run, seed=0), 50))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 50 * 100_000
    assert peak < 2_000_000


def test_a_run_without_tasks_and_a_negative_start_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 tasks"):
        stream_tasks(make_run(tmp_path / "empty", 0), seed=0)
    with pytest.raises(ValueError, match="start -1"):
        stream_tasks(make_run(tmp_path / "one", 1), seed=0, start=-1)
    with pytest.raises(ShardError, match="no such file"):
        stream_tasks(tmp_path, seed=0)
