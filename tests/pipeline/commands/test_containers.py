"""The commands with a Docker engine, as a user runs them."""

import json
from pathlib import Path

import pytest

from pipeline.sandbox.choose import probe
from pipeline.task.shards import read_tasks
from tests.pipeline.commands.conftest import Regrow
from tests.pipeline.sandbox.conftest import unavailable


@pytest.fixture(scope="module")
def contained(
    tiny_manifest: Path, regrow: Regrow, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run whose sandboxes were containers."""
    if not any(it.works for it in probe() if it.name == "docker"):
        unavailable("no container engine works")
    out = tmp_path_factory.mktemp("contained") / "tiny"
    done = regrow(*(
        "generate",
        tiny_manifest,
        "--out",
        out,
        "--max-tasks",
        1,
        "--sandbox",
        "docker",
    ))
    assert done.returncode == 0, done.stderr
    assert "images: 2 of tasks" in done.stdout
    return out


def test_a_task_made_in_containers_names_its_images(contained: Path, regrow: Regrow):
    (task,) = read_tasks(contained)
    images = (task.images.environment, task.images.solve, task.images.grade)
    assert len(set(images)) == 3
    assert all(image.startswith("sha256:") for image in images)
    done = regrow("inspect", contained, "--task", task.id)
    assert done.returncode == 0
    assert task.images.grade[7:19] in done.stdout


@pytest.mark.parametrize("sandbox", ["docker", "bubblewrap"])
def test_a_task_made_in_containers_is_right_in_both_back_ends(
    contained: Path, regrow: Regrow, sandbox: str
):
    done = regrow("verify", contained, "--sandbox", sandbox, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["wrong"] == []
    assert set(answer["right"].values()) == {1.0}
