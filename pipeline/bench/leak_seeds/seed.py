"""The records of a planted copy: what is copied, where to, what of it can be read there."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipeline.task.certificate import Part

# Of git and of compilers: the same files on every machine and at any time.
FIXED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaked:
    """Deleted code, as it was.

    Example: `Leaked(path="boltons/iterutils.py", name="chunked", code="def chunked…", …)`.
    """

    # Of the module in its tree.
    path: str
    # The whole module as it was, and without the code.
    module: bytes
    ablated: bytes
    # Of the definition.
    name: str
    # Its lines, with what stands above it in its class if it is a method.
    code: str
    # Names of its parameters.
    parameters: tuple[str, ...]

    @property
    def package(self) -> str:
        """The folder of the module."""
        return PurePosixPath(self.path).parent.name or "package"

    @property
    def file_name(self) -> str:
        """The module without its folder."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Programs that leave something behind, in an environment of their own."""

    # With mypy and coverage.
    python: Path
    # Empty, for what they need besides.
    scratch: Path

    def run(self, command: Sequence[str | Path], *, cwd: Path) -> bytes:
        """Run a program on files of ours.

        Raises:
            CalledProcessError: it failed.
        """
        return subprocess.run(
            command, cwd=cwd, env={**os.environ, **FIXED}, check=True, capture_output=True
        ).stdout


# Puts a copy into an empty folder, which is the root of what a solver sees.
Plant = Callable[[Leaked, Path, Tools], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A way to leave a copy behind.

    Example: `Seed(channel="wheels", variant="in a cache", part="body", plant=…)`.
    """

    channel: str
    variant: str
    # What anybody who looks closely can read there.
    part: Part
    plant: Plant


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def seeds_of(channel: str, part: Part, variants: Mapping[str, Plant]) -> tuple[Seed, ...]:
    """Return the seeds of a channel."""
    return tuple(
        Seed(channel=channel, variant=name, part=part, plant=plant)
        for name, plant in variants.items()
    )
