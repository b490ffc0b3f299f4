"""Run `regrow` as a user does, in a process of its own, with a cache of the bench's own."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOS = Path(__file__).parents[2] / "repos"

# `generate` ends with this when a Repo was refused: the rest is done and written.
REFUSED_A_REPO = 2
COMPARED = ("tasks", "rejects", "snapshots", "transcripts", "manifest.json")


class CommandFailedError(RuntimeError):
    """A `regrow` command that a bench needs did not do its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command came to."""

    exit_code: int
    # What `--json` printed; empty when it printed none.
    answer: dict[str, object]
    wall_s: float


@contextmanager
def started(arguments: Sequence[str | Path], *, cache: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a `regrow` command that runs; it is stopped when the block ends by an exception."""
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline", *map(str, arguments)],
        env={**os.environ, "REGROW_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.terminate()
            raise


def run(arguments: Sequence[str | Path], *, cache: Path) -> Ended:
    """Run a `regrow` command with `--json` to its end.

    Raises:
        CommandFailedError: it neither did its work nor said that a Repo was refused.
    """
    began_s = time.monotonic()
    with started([*arguments, "--json"], cache=cache) as process:
        output, _ = process.communicate()
    if process.returncode not in {0, 1, REFUSED_A_REPO} or not output.strip():
        command = f"regrow {' '.join(map(str, arguments))}"
        raise CommandFailedError(f"{command}: status {process.returncode}")
    return Ended(
        exit_code=process.returncode,
        answer=json.loads(output),
        wall_s=time.monotonic() - began_s,
    )


def digest_run(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file that a run consists of."""
    files = [path for name in COMPARED for path in [folder / name, *(folder / name).rglob("*")]]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if path.is_file()
    }
