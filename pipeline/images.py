"""Publish a Task as container images: one for who solves it, one for who grades that.

Both stand on the image in which jobs of the Repo run: interpreter, packages, their bytecode. No
layer holds what the Deletion took away, nor the solve image's layers a hidden test.
"""

import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.image_report import BuiltImages, write_report
from pipeline.sandbox import view
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.loading import (
    Entry,
    Layer,
    image_id,
    layers_of,
    load_image,
    write_layer,
)
from pipeline.sandbox.docker.sandbox import Docker
from pipeline.sandbox.process import USER_ID
from pipeline.sandbox.protocol import Mount, Sandbox
from pipeline.sandbox.warm import Warm
from pipeline.task.canonical import canonical_json
from pipeline.task.changed import Desk
from pipeline.task.record import Images, Task
from pipeline.task.solve_tree import ablated_tree, restore_tests, solve_tree
from pipeline.task.suite import (
    INSIDE,
    TOOLS,
    TREE,
    SuiteRequest,
    bench_mounts,
    bench_variables,
    bytecode_mounts,
    suite_message,
)
from pipeline.task.tree import LEFTOVERS, read_tree

# Where an image has the files that `start` lays out in TREE.
FOLDER = "/regrow"
# What begins each line of the runner.
NONCE = "regrow"
# Characters of a digest.
_SHOWN = len("sha256:") + 12
_START = f"""\
#!/bin/sh
# Lay the tree out where the environment expects it, then run what was asked for.
set -e
cp -RP {FOLDER}/tree/. {TREE}
cd {TREE}
exec "$@"
"""
_GRADE = f"""\
#!/bin/sh
# Run all tests with the pinned plugins; on standard output {NONCE}, a number and JSON of each.
exec 3>&1 1>&2
export REGROW_RESULTS_FD=3
exec /env/bin/python {TOOLS}/run_suite.py <{FOLDER}/request.json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A Task's images on an engine that may have lost them."""

    images: Images
    # In a line, what is not as the Task says; empty when all is.
    difference: str


def with_images(task: Task, *, desk: Desk, run: Path) -> Task:
    """Return a Task with the digests of its images; as it is where no engine runs the jobs.

    Args:
        task: what to publish.
        desk: of its Repo.
        run: the run folder, where a report of sizes and seconds goes.

    Raises:
        SandboxStoppedError, SandboxBrokenError: the machine failed; nothing is decided.
    """
    docker = docker_behind(desk.sandbox)
    if docker is None:
        return task
    built = docker.patiently(lambda: build_task_images(task, desk=desk, docker=docker))
    write_report(built, task, run=run)
    return replace(task, images=built.images)


def build_task_images(task: Task, *, desk: Desk, docker: Docker) -> BuiltImages:
    """Make the images of a Task, unless the engine has them.

    Args:
        task: what to solve; its own images are not looked at.
        desk: of its Repo, with the bytecode that runs have left.
        docker: whose engine keeps the images.

    Raises:
        SandboxBrokenError: the engine says that it cannot.
        EngineLostError: the engine is gone.
    """
    began_s = time.monotonic()
    snapshot = read_tree(desk.tree)
    pristine = restore_tests(snapshot, ablated_tree(task.deletion, snapshot))
    run = docker.bake(run_mounts(desk)).image
    # On top are the runner and the first process of jobs, of whatever time their files have.
    *environment, _, _ = layers_of(docker.engine, run)
    with tempfile.TemporaryDirectory(prefix="regrow-images-") as scratch:
        shelf = _Shelf(task=task, desk=desk, engine=docker.engine, run=run, folder=Path(scratch))
        start = shelf.layer("start", _start_entries())
        solve = shelf.layer("solve", _tree_entries(desk.tree, solve_tree(task, snapshot)))
        grade = shelf.layer("grade", _tree_entries(desk.tree, pristine))
        runner = shelf.layer("runner", _runner_entries(task, desk))
        shell, tests = ("/bin/sh",), (f"{FOLDER}/grade",)
        images = Images(
            environment=shelf.image("environment", (*environment, start), command=shell),
            solve=shelf.image("solve", (*environment, start, solve), command=shell),
            grade=shelf.image("grade", (*environment, start, grade, runner), command=tests),
        )
    return _measured(images, engine=docker.engine, build_s=time.monotonic() - began_s)


def run_mounts(desk: Desk) -> tuple[Mount, ...]:
    """Return what a run of a suite may read, as `run_suite` mounts it: the runner comes last."""
    compiled = bytecode_mounts(desk.sandbox, desk.bench, tree=desk.bench.bytecode / "tree")
    readable = (mount for mount in compiled if mount.mode == "read")
    return (*bench_mounts(desk.bench), *readable, Mount(source=INSIDE, target=TOOLS))


def resolve_images(task: Task, *, desk: Desk, docker: Docker) -> Resolved:
    """Return the images of a Task, made again where the engine does not have them."""
    recorded = asdict(task.images)
    if all(image and image_id(docker.engine, image) for image in recorded.values()):
        return Resolved(images=task.images, difference="")
    images = build_task_images(task, desk=desk, docker=docker).images
    differing = ", ".join(
        f"{name} {found[:_SHOWN]} instead of {recorded[name][:_SHOWN]}"
        for name, found in asdict(images).items()
        if recorded[name] not in {"", found}
    )
    said = f"{task.id}: made again, these images are not as recorded: {differing}"
    return Resolved(images=images, difference=said if differing else "")


def restore_images(task: Task, *, desk: Desk) -> str:
    """Have the engine get the images of a Task that it lacks; return what is not as recorded.

    Returns:
        A line; empty when all is well, the Task has no images, or no engine runs the jobs.

    Raises:
        SandboxStoppedError, SandboxBrokenError: the machine failed, or cannot make them.
    """
    docker = docker_behind(desk.sandbox)
    if docker is None or not task.images.environment:
        return ""
    return docker.patiently(lambda: resolve_images(task, desk=desk, docker=docker)).difference


def docker_behind(sandbox: Sandbox) -> Docker | None:
    """Return the container back end that a sandbox is or keeps warm; None for another."""
    inner = sandbox.inner if isinstance(sandbox, Warm) else sandbox
    return inner if isinstance(inner, Docker) else None


def _measured(images: Images, *, engine: Engine, build_s: float) -> BuiltImages:
    with engine.calls("look at the images of a task"):
        sizes = {
            name: int(engine.client.images.get(image).attrs["Size"])
            for name, image in asdict(images).items()
        }
    return BuiltImages(
        images=images,
        environment_bytes=sizes["environment"],
        solve_bytes=sizes["solve"] - sizes["environment"],
        grade_bytes=sizes["grade"] - sizes["environment"],
        build_s=build_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shelf:
    """Where the layers and images of one Task are put together."""

    task: Task
    desk: Desk
    engine: Engine
    # Id of the image that jobs run in.
    run: str
    # For tars.
    folder: Path

    def layer(self, name: str, entries: Iterator[Entry]) -> Layer:
        return write_layer(entries, into=self.folder / f"{name}.tar")

    def image(self, name: str, layers: tuple[Layer, ...], *, command: tuple[str, ...]) -> str:
        """Load an image under a tag that tells its content."""
        variables = {**view.VARIABLES, **dict(bench_variables(self.desk.bench))}
        config = {
            "Env": [f"{key}={text}" for key, text in variables.items()],
            "User": f"{USER_ID}:{USER_ID}",
            "WorkingDir": TREE,
            "Entrypoint": [f"{FOLDER}/start"],
            "Cmd": list(command),
            "Labels": {"regrow.image": name, "regrow.repo": self.task.repo.name},
        }
        return load_image(
            self.engine,
            name=f"regrow/{self.task.repo.name}:{name}-",
            layers=layers,
            architecture=self._architecture(),
            config=config,
            donor=self.run,
        )

    def _architecture(self) -> str:
        with self.engine.calls("look at the image of jobs"):
            return str(self.engine.client.images.get(self.run).attrs["Architecture"])


def _start_entries() -> Iterator[Entry]:
    """Yield what makes an image one that anybody can start."""
    yield Entry(path=f"{FOLDER}/start".lstrip("/"), content=_START.encode(), mode=0o755)
    for path in (TREE, view.HOME):
        yield Entry(path=path.lstrip("/"), kind="folder", mode=0o755, owner=USER_ID)
    for name in view.ETC:
        yield Entry(path=f"etc/{name}", content=(view.INSIDE / "etc" / name).read_bytes())


def _tree_entries(tree: Path, files: Mapping[str, bytes]) -> Iterator[Entry]:
    """Yield some files of a tree, and all its links; what was run keeps its right to be."""
    for path, content in files.items():
        found = tree / path
        is_program = found.is_file() and found.stat().st_mode & stat.S_IXUSR
        yield Entry(path=_placed(path), content=content, mode=0o755 if is_program else 0o644)
    for parent, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in LEFTOVERS]
        for link in (Path(parent, name) for name in folders + names):
            if link.is_symlink():
                yield Entry(
                    path=_placed(link.relative_to(tree).as_posix()),
                    kind="link",
                    content=os.fsencode(link.readlink()),
                    mode=0o777,
                )


def _placed(path: str) -> str:
    return f"{FOLDER}/tree/{path}".lstrip("/")


def _runner_entries(task: Task, desk: Desk) -> Iterator[Entry]:
    """Yield the runner, what it is told, and the list of plugins for people."""
    for file in sorted(INSIDE.glob("*.py")):
        yield Entry(path=f"{TOOLS}/{file.name}".lstrip("/"), content=file.read_bytes())
    plugins = task.grading.plugins
    request = suite_message(desk.bench, SuiteRequest(plugins=plugins), nonce=NONCE)
    texts = {
        "grade": _GRADE,
        "request.json": canonical_json(request),
        "plugins": "".join(f"{name}\n" for name in plugins),
    }
    for name, text in texts.items():
        mode = 0o755 if name == "grade" else 0o644
        yield Entry(path=f"{FOLDER}/{name}".lstrip("/"), content=text.encode(), mode=mode)
