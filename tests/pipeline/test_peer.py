"""What SWE-smith is given to run on: an image, a line of shell, and no leftovers in its way."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from docker.models.containers import Container

from pipeline.bench.peer_image import WORK, bake_library, remove_containers, suite_line
from pipeline.sandbox.docker.engine import Engine, connect
from pipeline.sandbox.protocol import SandboxUnavailableError
from pipeline.task.grade import Desk
from pipeline.task.origin import Variable
from tests.pipeline.conftest import DeskFor, MakeTree
from tests.pipeline.sandbox.conftest import unavailable

FILES = {
    "src/box.py": "def lid(size):\n    return size + 1\n",
    "tests/test_box.py": """\
import os

import pytest

from box import lid


def test_lid():
    assert lid(1) == 2


def test_where():
    assert os.environ["A_WORD"] == "two words"


def test_slow():
    assert False
""",
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    try:
        return connect()
    except SandboxUnavailableError as error:
        unavailable(str(error))


@pytest.fixture(scope="module")
def desk(make_tree: MakeTree, desk_for: DeskFor) -> Desk:
    return desk_for(
        make_tree(FILES),
        args=("-k", "not slow"),
        import_roots=("src",),
        variables=(Variable(name="A_WORD", value="two words"),),
    )


@contextmanager
def idle(engine: Engine, image: str) -> Iterator[Container]:
    """Give a container as SWE-smith starts them."""
    container = engine.client.containers.run(image, "tail -f /dev/null", user="root", detach=True)
    try:
        yield container
    finally:
        # At once: what is killed may not have ended when it is to be removed.
        container.remove(force=True)


def test_the_line_runs_the_suite_of_the_images_tree_as_it_stands(engine: Engine, desk: Desk):
    with idle(engine, bake_library(engine, desk)) as container:
        status, output = run(container, suite_line(desk))
        assert status == 0, output
        assert "tests/test_box.py::test_lid PASSED" in output
        assert "2 passed, 1 deselected" in output
        broken = "def lid(size):\n    return size\n"
        assert run(container, f"printf '%s' '{broken}' > src/box.py")[0] == 0
        status, output = run(container, suite_line(desk))
    assert status == 1
    assert "FAILED tests/test_box.py::test_lid" in output


def run(container: Container, line: str) -> tuple[int, str]:
    status, output = container.exec_run(["/bin/bash", "-c", line], workdir=WORK, user="root")
    return status, output.decode()


def test_only_the_containers_of_an_image_are_removed(
    engine: Engine, desk: Desk, make_tree: MakeTree, desk_for: DeskFor
):
    mine = bake_library(engine, desk)
    others = bake_library(engine, desk_for(make_tree({"test_other.py": ""})))
    with idle(engine, others) as kept:
        left = engine.client.containers.run(mine, "tail -f /dev/null", user="root", detach=True)
        remove_containers(engine, mine)
        there = {it.id for it in engine.client.containers.list(all=True)}
    assert kept.id in there
    assert left.id not in there
