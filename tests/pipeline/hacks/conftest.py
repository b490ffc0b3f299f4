from pathlib import Path

import pytest

from pipeline.hacks.setting import Setting, set_up
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import TaskOf


@pytest.fixture(scope="session", params=["pantry.units.convert", "pantry.shelf.Shelf.heaviest"])
def task(request: pytest.FixtureRequest, task_of: TaskOf) -> Task:
    """Return a task for a function, and one for a method."""
    made = task_of(request.param)
    assert isinstance(made, Task), made
    return made


@pytest.fixture(scope="session")
def setting(task: Task, pantry_desk: Desk) -> Setting:
    return set_up(task, solve_tree(task, read_tree(pantry_desk.tree)))


@pytest.fixture
def solve_folder(setting: Setting, pantry_desk: Desk, tmp_path: Path) -> Path:
    """Lay out the solve tree."""
    for path, content in setting.files.items():
        file = tmp_path / "solve" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    pantry_desk.sandbox.adopt(tmp_path / "solve")
    return tmp_path / "solve"
