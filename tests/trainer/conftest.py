"""Torch on one thread, and a Task of the pipeline's small library with its run folder."""

import shutil
import sys
from pathlib import Path

import pytest

from pipeline.desk import Folders
from pipeline.task.manifest import describe, write_manifest
from pipeline.task.record import Task
from pipeline.task.shards import write_shards
from tests.pipeline import conftest as pipeline_tests

# A fixture is found where it has a name.
cache, folders, sandbox = pipeline_tests.cache, pipeline_tests.folders, pipeline_tests.sandbox
make_tree, repo_for, prepared = (
    pipeline_tests.make_tree,
    pipeline_tests.repo_for,
    pipeline_tests.prepared,
)
pantry_desk, task_of = pipeline_tests.pantry_desk, pipeline_tests.task_of


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Leave the other cores to other tests, where a test has imported torch at all."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pantry_task(task_of: pipeline_tests.TaskOf) -> Task:
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    return made


@pytest.fixture(scope="session")
def pantry_run(
    pantry_task: Task, folders: Folders, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a run folder with that Task and its Snapshot."""
    run = tmp_path_factory.mktemp("run")
    archive = folders.archive(pantry_task.snapshot)
    (run / "snapshots").mkdir()
    shutil.copy(archive, run / "snapshots")
    files = [*write_shards(run, "tasks", [pantry_task]), describe(run, f"snapshots/{archive.name}")]
    write_manifest(run, files, config={})
    return run


@pytest.fixture
def own_cache(cache: Path, tmp_path: Path) -> Path:
    """Return a cache with what is there, and a place for trees that no other test uses."""
    own = tmp_path / "cache"
    own.mkdir()
    for path in cache.iterdir():
        if path.name != "scratch":
            (own / path.name).symlink_to(path)
    return own
