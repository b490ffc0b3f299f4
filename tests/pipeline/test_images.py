"""What the images of a task show, what no layer of them holds, how they are made again."""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from pipeline.image_report import BuiltImages, image_lines, read_report, summary_line
from pipeline.images import (
    NONCE,
    build_task_images,
    resolve_images,
    restore_images,
    with_images,
)
from pipeline.sandbox.docker.loading import image_id, layers_of
from pipeline.sandbox.docker.sandbox import Docker, open_docker
from pipeline.sandbox.protocol import SandboxUnavailableError
from pipeline.task.changed import Desk
from pipeline.task.patch import apply_patch
from pipeline.task.record import Images, Task
from pipeline.task.results import read_lines
from pipeline.task.solve_tree import solve_tree
from pipeline.task.suite import run_suite
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import LIMITS, TaskOf
from tests.pipeline.sandbox.conftest import unavailable

Files = Callable[..., Iterator[tuple[str, bytes]]]

MISSING = f"sha256:{'0' * 64}"


@pytest.fixture(scope="module")
def docker() -> Iterator[Docker]:
    try:
        opened = open_docker()
    except SandboxUnavailableError as error:
        unavailable(str(error))
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def task(task_of: TaskOf) -> Task:
    """Return a task with a test that solvers do not see."""
    made = task_of("pantry.units.convert")
    assert isinstance(made, Task), made
    hidden = next(it.id for it in made.evidence.fail_to_pass if "unknown" in it.id)
    return replace(made, grading=replace(made.grading, hidden=(hidden,)))


@pytest.fixture(scope="module")
def other(task_of: TaskOf) -> Task:
    made = task_of("pantry.words")
    assert isinstance(made, Task), made
    return made


@pytest.fixture(scope="module")
def built(task: Task, pantry_desk: Desk, docker: Docker) -> Iterator[BuiltImages]:
    made = build_task_images(task, desk=pantry_desk, docker=docker)
    yield made
    remove(docker, made.images)


def remove(docker: Docker, images: Images) -> None:
    for image in (images.solve, images.grade, images.environment):
        docker.engine.client.images.remove(image, force=True)


def started(docker: Docker, image: str, *command: str) -> bytes:
    """Run a command in an image as anybody can, and return its standard output."""
    container = docker.engine.client.containers.create(
        image, list(command) or None, network_mode="none"
    )
    try:
        container.start()
        container.wait()
        return bytes(container.logs(stdout=True, stderr=False))
    finally:
        container.remove(force=True)


@pytest.fixture(scope="module")
def files(built: BuiltImages, docker: Docker, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return a reader of each file in each layer of an image, those that are covered too."""
    folder = tmp_path_factory.mktemp("saved")
    for image in (built.images.solve, built.images.grade):
        with (folder / image).open("wb") as file:
            file.writelines(docker.engine.client.images.get(image).save())

    def read(image: str, *, besides: str = "") -> Iterator[tuple[str, bytes]]:
        known = {it.diff_id for it in layers_of(docker.engine, besides)} if besides else set()
        with tarfile.open(folder / image) as archive:
            (manifest,) = json.load(archive.extractfile("manifest.json"))
            layers = zip(layers_of(docker.engine, image), manifest["Layers"], strict=True)
            for layer, name in layers:
                if layer.diff_id not in known:
                    yield from files_in(archive.extractfile(name))

    return read


def files_in(layer: IO[bytes] | None) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=layer) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            yield member.name, content.read() if content else b""


def answer_of(task: Task, desk: Desk) -> set[bytes]:
    """Return the lines that only the answer has."""
    gold = {
        line[1:].strip().encode()
        for line in task.deletion.gold_patch.splitlines()
        if line.startswith("+") and not line.startswith("+++")
    }
    shown = b"\n".join(solve_tree(task, read_tree(desk.tree)).values())
    return {line for line in gold if len(line) > 12 and line not in shown}


def collected_in(docker: Docker, images: Images) -> list[str]:
    command = ("/env/bin/python", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    said = started(docker, images.grade, *command).decode()
    return sorted(line for line in said.splitlines() if "::" in line)


def test_the_solve_image_shows_what_a_solver_gets(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    said = started(docker, built.images.solve, "tar", "-c", ".")
    with tarfile.open(fileobj=io.BytesIO(said)) as tar:
        found = {
            member.name.removeprefix("./"): tar.extractfile(member).read()
            for member in tar
            if member.isreg()
        }
    assert found == solve_tree(task, read_tree(pantry_desk.tree))


def test_no_layer_of_any_image_holds_the_answer(
    task: Task, built: BuiltImages, pantry_desk: Desk, files: Files
):
    answer = answer_of(task, pantry_desk)
    assert b"grams = amount * _factor(source)" in answer
    compiled = []
    # The solve image has all layers of the environment.
    for name, content in (
        *files(built.images.solve),
        *files(built.images.grade, besides=built.images.solve),
    ):
        assert not [line for line in answer if line in content], name
        if name.endswith(".pyc"):
            compiled.append(name)
    # Nor what the tree was compiled to, which says as much.
    assert list((pantry_desk.bench.bytecode / "tree").rglob("units.*.pyc"))
    assert any("/_pytest/" in name for name in compiled)
    assert not [name for name in compiled if "pantry" in name or name.startswith("pyc/work")]


def test_hidden_tests_are_in_the_grade_image_alone(task: Task, built: BuiltImages, files: Files):
    assert "unknown" in task.grading.hidden[0]

    def mentions(image: str) -> bool:
        shown = files(image, besides=built.images.environment)
        return any(b"def test_unknown_unit" in content for _, content in shown)

    assert not mentions(built.images.solve)
    assert mentions(built.images.grade)


def test_images_of_one_repo_share_the_layers_of_their_environment(
    built: BuiltImages, other: Task, pantry_desk: Desk, docker: Docker
):
    another = build_task_images(other, desk=pantry_desk, docker=docker)
    assert another.images.environment == built.images.environment
    environment = layers_of(docker.engine, built.images.environment)
    for images in (built.images, another.images):
        assert layers_of(docker.engine, images.solve)[:-1] == environment
        assert layers_of(docker.engine, images.grade)[:-2] == environment
    assert another.images.solve != built.images.solve
    for image in (another.images.solve, another.images.grade):
        docker.engine.client.images.remove(image)
    assert built.solve_bytes + built.grade_bytes < 2**20 < built.environment_bytes


def test_building_again_makes_nothing(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    def tagged() -> list[str]:
        images = (built.images.environment, built.images.solve, built.images.grade)
        return [
            docker.engine.client.images.get(image).attrs["Metadata"]["LastTagTime"]
            for image in images
        ]

    before = tagged()
    again = build_task_images(task, desk=pantry_desk, docker=docker)
    assert again.images == built.images
    assert tagged() == before


def test_images_made_again_are_the_same_and_collect_the_same_tests(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    before = collected_in(docker, built.images)
    suite = run_suite(
        pantry_desk.sandbox, tree=pantry_desk.tree, bench=pantry_desk.bench, limits=LIMITS
    )
    # What was deleted takes its doctest away, and the modules of tests that import it.
    gone = ("pantry/units.py::pantry.units.convert", "tests/test_units.py")
    assert before == sorted(it for it in suite.collected if not it.startswith(gone))
    remove(docker, built.images)
    recorded = replace(task, images=built.images)
    resolved = resolve_images(recorded, desk=pantry_desk, docker=docker)
    assert (resolved.images, resolved.difference) == (built.images, "")
    assert collected_in(docker, resolved.images) == before


def test_a_digest_that_cannot_be_made_again_is_named_in_a_line(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    lost = replace(task, images=replace(built.images, solve=MISSING))
    resolved = resolve_images(lost, desk=pantry_desk, docker=docker)
    assert resolved.images == built.images
    assert resolved.difference == (
        f"{task.id}: made again, these images are not as recorded:"
        f" solve {built.images.solve[:19]} instead of {MISSING[:19]}"
    )


def test_a_task_whose_images_are_gone_gets_them_again_before_it_is_graded(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    desk = replace(pantry_desk, sandbox=docker)
    remove(docker, built.images)
    assert not restore_images(replace(task, images=built.images), desk=desk)
    assert image_id(docker.engine, built.images.grade) == built.images.grade
    lost = replace(task, images=replace(built.images, grade=MISSING))
    assert f"grade {built.images.grade[:19]} instead of" in restore_images(lost, desk=desk)
    assert not restore_images(lost, desk=pantry_desk)
    assert not restore_images(task, desk=desk)


def test_the_grade_image_reports_each_test(task: Task, built: BuiltImages, docker: Docker):
    found = outcomes(started(docker, built.images.grade))
    assert {found.get(it.id) for it in task.evidence.fail_to_pass} == {None}
    assert set(found.values()) == {"passed"}
    assert "tests/test_shelf.py::test_add" in found


def test_a_solved_tree_passes_in_the_grade_image(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker
):
    tree = solve_tree(task, read_tree(pantry_desk.tree))
    script = "".join(
        f"cat > {path} <<'END'\n{(content or b'').decode()}\nEND\n"
        for path, content in apply_patch(tree, task.deletion.gold_patch).items()
    )
    said = started(docker, built.images.grade, "sh", "-c", f"{script}exec /regrow/grade")
    found = outcomes(said)
    assert {found[it.id] for it in task.evidence.fail_to_pass} == {"passed"}


def outcomes(said: bytes) -> dict[str, str]:
    lines, forged = read_lines(said, nonce=NONCE)
    assert not forged
    return {line["id"]: line["outcome"] for line in lines if line["kind"] == "test"}


def test_a_run_without_an_engine_has_no_images(task: Task, pantry_desk: Desk, tmp_path: Path):
    assert with_images(task, desk=pantry_desk, run=tmp_path) == task
    assert image_lines(task, run=tmp_path) == ()
    assert summary_line((task,), run=tmp_path) == ""


def test_a_run_with_an_engine_reports_what_its_images_cost(
    task: Task, built: BuiltImages, pantry_desk: Desk, docker: Docker, tmp_path: Path
):
    published = with_images(task, desk=replace(pantry_desk, sandbox=docker), run=tmp_path)
    assert published.images == built.images
    report = read_report(published, run=tmp_path)
    assert report is not None
    assert report.environment_bytes == built.environment_bytes
    first, *_, last = image_lines(published, run=tmp_path)
    assert first.startswith(f"image environment: {built.images.environment}, ")
    assert last.startswith("images built in ")
    assert summary_line((published,), run=tmp_path).startswith("images: 2 of tasks, ")
