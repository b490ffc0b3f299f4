"""Run uv for locks and environments, apart from the machine's settings."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uv

from pipeline.index import IndexUnreachableError
from pipeline.task.reject import Reject

# What of the caller's variables would change what is installed or which interpreter is found.
FOREIGN = ("UV_", "PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA")
# Of uv's own, those that only say how to reach the network.
KEPT = frozenset({
    "UV_HTTP_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_INSECURE_HOST",
})
FLAGS = ("--no-config", "--no-python-downloads", "--no-progress", "--color", "never")

# uv's words for a verdict about what was asked for; all others are trouble of the machine.
VERDICTS = (
    "No solution found",
    "Couldn't parse requirement",
    "Hash mismatch",
    "No interpreter found",
    "Invalid version request",
)
# An index that refuses to answer is for uv one that has no such package.
REFUSED = ("401 Unauthorized", "403 Forbidden")
NETWORK = ("error sending request", "Failed to fetch", "Request failed", "timed out")
MAX_DETAIL = 400

DESCRIBE = "import sys; print(sys.base_prefix); print('.'.join(map(str, sys.version_info[:3])))"


class InstallError(OSError):
    """The machine could not make an environment: no space, broken cache; a retry may cure it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python of this machine that environments can be based on.

    Example: `Interpreter(path=Path("/usr/bin/python3.11"), prefix=Path("/usr"), version="3.11.2")`.
    """

    # Resolved, never that of a virtual environment.
    path: Path
    # Its `sys.base_prefix`.
    prefix: Path
    # `major.minor.micro`.
    version: str


def run_uv(arguments: Sequence[str], *, cache: Path, reason: str, stdin: str = "") -> str | Reject:
    """Run a uv command; return its standard output, or a Reject with `reason` for its verdict.

    Raises:
        IndexUnreachableError: the network or the index failed.
        InstallError: anything else did.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not name.startswith(FOREIGN)
    }
    done = subprocess.run(
        [uv.find_uv_bin(), *arguments, *FLAGS],
        input=stdin,
        env={**inherited, "UV_CACHE_DIR": str(cache / "uv"), "TZ": "UTC"},
        # Away from any project whose files uv would heed.
        cwd=_made(cache),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout
    said = done.stderr
    if any(words in said for words in REFUSED):
        raise IndexUnreachableError(_end(said))
    if any(words in said for words in VERDICTS):
        return Reject(stage="environment", reason=reason, detail=_gist(said))
    if any(words in said for words in NETWORK):
        raise IndexUnreachableError(_gist(said))
    raise InstallError(_gist(said) or f"uv ended with {done.returncode}")


def find_interpreter(python: str, *, cache: Path) -> Interpreter | Reject:
    """Find a `major.minor` interpreter outside of virtual environments; none is downloaded."""
    found = run_uv(
        ("python", "find", "--system", "--no-project", python), cache=cache, reason="no_interpreter"
    )
    return found if isinstance(found, Reject) else describe_interpreter(Path(found.strip()))


def describe_interpreter(path: Path) -> Interpreter:
    """Ask an interpreter for its prefix and version, without running its site-packages.

    Raises:
        InstallError: it does not start, or says something else.
    """
    real = path.resolve()
    try:
        told = subprocess.run(
            [real, "-I", "-S", "-c", DESCRIBE], capture_output=True, text=True, check=True
        )
        prefix, version = told.stdout.splitlines()
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        raise InstallError(f"{path} does not work as a Python: {error}") from error
    return Interpreter(path=real, prefix=Path(prefix), version=version)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _end(said: str) -> str:
    """Put the end of what uv said on one line: there its hints are."""
    return " ".join(said.split())[-MAX_DETAIL:]


def _gist(said: str) -> str:
    """Put uv's error on one line, its cause first: that is where the packages are named."""
    words = " ".join(said.split())
    for start in ("Because ", "error: "):
        words = words[max(words.find(start), 0) :]
    return words.removeprefix("error: ")[:MAX_DETAIL]
