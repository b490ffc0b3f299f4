"""Bake a library into an image as SWE-smith wants them: the tree at `/testbed`, a suite to run."""

import os
import shlex

from pipeline.images import run_mounts
from pipeline.sandbox import view
from pipeline.sandbox.docker.baking import bake
from pipeline.sandbox.docker.base import ensure_base
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.protocol import Mount
from pipeline.task.grade import Desk
from pipeline.task.suite import TOOLS, bench_variables

# Where its containers look for the tree.
WORK = "/testbed"
# As its profiles for Python run a suite.
PYTEST = ("python", "-m", "pytest", "--disable-warnings", "--color=no", "--tb=no", "--verbose")


def bake_library(engine: Engine, desk: Desk) -> str:
    """Return the name of an image like that of our own runs, with the tree instead of a runner.

    Args:
        engine: where to build it; what nobody uses for a week goes as all baked images do.
        desk: of the library, with the bytecode of its packages.

    Raises:
        SandboxBrokenError: the image cannot be built.
        EngineLostError: the engine is gone.
    """
    mounts = (mount for mount in run_mounts(desk) if mount.target != TOOLS)
    tree = Mount(source=desk.tree, target=WORK)
    return bake(engine, ensure_base(engine), (*mounts, tree)).tag


def suite_line(desk: Desk) -> str:
    """Return the line of shell that runs the suite in the image."""
    roots = [f"{WORK}/{root}".rstrip("/.") for root in desk.bench.import_roots]
    variables = {
        **view.VARIABLES,
        **dict(bench_variables(desk.bench)),
        "PYTHONPATH": os.pathsep.join(roots),
    }
    exports = shlex.join(("export", *(f"{name}={value}" for name, value in variables.items())))
    return f"{exports}; {shlex.join((*PYTEST, *desk.bench.command.args))}"


def remove_containers(engine: Engine, image: str) -> None:
    """Remove the containers of an image, which a run that was stopped leaves at work."""
    with engine.calls("remove containers"):
        for container in engine.client.containers.list(all=True, filters={"ancestor": image}):
            container.remove(force=True)
