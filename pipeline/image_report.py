"""Keep what the container images of a run's Tasks cost, beside its shards."""

import json
from dataclasses import dataclass
from pathlib import Path

from pipeline.task.canonical import canonical_json
from pipeline.task.files import write_whole
from pipeline.task.record import Images, Task

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImages:
    """A Task's images, and what they cost.

    Example: `BuiltImages(images=Images(…), environment_bytes=2**28, …, build_s=1.5)`.
    """

    images: Images
    # With all layers, those shared with other Repos too.
    environment_bytes: int
    # What each adds to the environment.
    solve_bytes: int
    grade_bytes: int
    # Wall seconds of making what the engine did not have.
    build_s: float


def write_report(built: BuiltImages, task: Task, *, run: Path) -> None:
    """Keep what the images of a Task cost."""
    write_whole(_file(task, run), canonical_json(built).encode())


def read_report(task: Task, *, run: Path) -> BuiltImages | None:
    """Return what the images of a Task cost; None when this run did not make them."""
    try:
        fields = json.loads(_file(task, run).read_bytes())
    except FileNotFoundError:
        return None
    return BuiltImages(**{**fields, "images": Images(**fields["images"])})


def image_lines(task: Task, *, run: Path) -> tuple[str, ...]:
    """Describe a Task's images for people; no lines when it has none."""
    images, built = task.images, read_report(task, run=run)
    if not images.environment:
        return ()
    if built is None or built.images != images:
        return tuple(
            f"image {name}: {digest}"
            for name, digest in (
                ("environment", images.environment),
                ("solve", images.solve),
                ("grade", images.grade),
            )
        )
    return (
        f"image environment: {images.environment}, {_size(built.environment_bytes)}",
        f"image solve: {images.solve}, {_size(built.solve_bytes)} more",
        f"image grade: {images.grade}, {_size(built.grade_bytes)} more",
        f"images built in {built.build_s:.1f} s",
    )


def summary_line(tasks: tuple[Task, ...], *, run: Path) -> str:
    """Say what all images of a run cost; empty when it made none."""
    built = [report for task in tasks if (report := read_report(task, run=run))]
    if not built:
        return ""
    environments = {it.images.environment: it.environment_bytes for it in built}
    added = sum(it.solve_bytes + it.grade_bytes for it in built)
    return (
        f"images: {2 * len(built)} of tasks, {_size(added)};"
        f" {len(environments)} of environments, {_size(sum(environments.values()))};"
        f" built in {sum(it.build_s for it in built):.1f} s"
    )


def _file(task: Task, run: Path) -> Path:
    return run / "images" / f"{task.id}.json"


def _size(num_bytes: int) -> str:
    return f"{num_bytes / _MIB:.1f} MiB"
