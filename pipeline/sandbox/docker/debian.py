"""Make a small Debian from the packages of this machine's own sources, with mmdebstrap."""

import os
import platform
import re
import shutil
import subprocess
import time
from pathlib import Path

from pipeline.sandbox.protocol import SandboxUnavailableError

# What jobs find on a machine where Regrow runs: an interpreter with all of its standard library
# and the libraries that other interpreters link to; git and the like, which some suites call.
PACKAGES = (
    "ca-certificates",
    "git",
    "libstdc++6",
    "netbase",
    "procps",
    "python3",
    "python3-venv",
    "tzdata",
)
_TOOL = "mmdebstrap"
_TIMEOUT_S = 600
_NUM_SHOWN_LINES = 3


def recipe() -> tuple[str, ...]:
    """Return all that is decided here of what is made."""
    return (_suite(), *PACKAGES)


def make(tar: Path, *, log: Path) -> None:
    """Write a tar of a whole file system.

    Args:
        tar: where to.
        log: where all that is said meanwhile is kept.

    Raises:
        SandboxUnavailableError: no such tool, or it failed; the message ends with its last words.
    """
    if shutil.which(_TOOL) is None:
        raise SandboxUnavailableError(
            "there is no base image for containers, no registry to pull one from, and no"
            f" {_TOOL} to make one; install it (`apt install {_TOOL}`), or name an image in"
            " REGROW_DOCKER_BASE"
        )
    command = [
        *(_TOOL, "--variant=essential", "--format=tar", f"--include={','.join(PACKAGES)}"),
        *(_suite(), str(tar), *_sources()),
    ]
    # Later than any package, so that the times of their files stay as they are.
    epoch = {"SOURCE_DATE_EPOCH": str(int(time.time()))}
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **epoch},
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _failed(f"did not end in {_TIMEOUT_S} s", log=log) from None
    if done.returncode != 0:
        raise _failed(f"ended with {done.returncode}", log=log)


def _suite() -> str:
    """Return the code name of this machine's release; `stable` on other systems."""
    try:
        return platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    except OSError:
        return "stable"


def _sources() -> list[str]:
    """Return the files that name this release's archives; none for the tool's own choice."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.[ls]*"))]
    named = re.compile(rf"^[^#]*\s{re.escape(_suite())}(\s|$)", re.MULTILINE)
    return [
        str(file)
        for file in files
        if file.suffix in {".list", ".sources"} and file.is_file() and named.search(_read(file))
    ]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _failed(how: str, *, log: Path) -> SandboxUnavailableError:
    lines = [line.strip() for line in _read(log).splitlines() if line.strip()]
    last = " | ".join(lines[-_NUM_SHOWN_LINES:]) or "it said nothing"
    return SandboxUnavailableError(
        f"no base image: {_TOOL} {how}: {last}; the whole log is in {log}"
    )
