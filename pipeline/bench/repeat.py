"""Bench `repeat`: the same input gives the same bytes, whoever works and whatever is killed."""

import contextlib
import random
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.bench.command import REPOS, digest_run, run, started
from pipeline.task.claims import Report, at_least

MANIFEST = REPOS / "quickstart.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
NUM_KILLS = 3
# A kill that comes after the end is no kill; the next one comes sooner.
MAX_STARTS = 12

# The first has a warm cache and no other difference: its time is what kills are dealt over.
WAYS: dict[str, tuple[str, ...]] = {
    "once more": ("--jobs", "2"),
    "one job": ("--jobs", "1"),
    "plain loop": ("--runner", "plain"),
}
KILLED = "killed three times"


def measure(folder: Path, *, quick: bool) -> Report:
    """Run once undisturbed, then in each other way, and compare every file."""
    cache = folder / "cache"
    manifest = QUICK_MANIFEST if quick else MANIFEST
    command: tuple[str | Path, ...] = ("generate", manifest, "--max-tasks", "1" if quick else "4")
    run((*command, "--out", folder / "first", "--jobs", "2"), cache=cache)
    expected = digest_run(folder / "first")
    rows, walls_s = [], {}
    for name, options in WAYS.items():
        out = folder / name.replace(" ", "-")
        walls_s[name] = run((*command, "--out", out, *options), cache=cache).wall_s
        rows.append(_row(name, out, num_starts=1, expected=expected))
    out = folder / "killed"
    arguments = (*command, "--out", out, "--jobs", "2")
    num_hits, num_starts = _kill(arguments, cache=cache, wall_s=walls_s["once more"])
    run(arguments, cache=cache)
    rows.append(_row(KILLED, out, num_starts=num_starts + 1, expected=expected))
    return Report(
        bench="repeat",
        claims=(
            *(
                at_least(f"share of files with the same bytes, {row[0]}", row[3] / row[2], 1.0)
                for row in rows
            ),
            at_least("kills that hit a running process", num_hits, NUM_KILLS),
        ),
        columns=("way", "starts", "files", "same", "extra"),
        rows=tuple(rows),
    )


def _kill(arguments: Sequence[str | Path], *, cache: Path, wall_s: float) -> tuple[int, int]:
    """Kill the command at random moments; return how many kills hit it, and of how many starts."""
    moments = random.Random(0)  # noqa: S311  moments, no secret
    num_hits = num_starts = 0
    while num_hits < NUM_KILLS and num_starts < MAX_STARTS:
        num_starts += 1
        with started(arguments, cache=cache) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=moments.uniform(0.1, 0.9) * wall_s)
            process.kill()
            process.communicate()
        if process.returncode == -signal.SIGKILL:
            num_hits += 1
        else:
            wall_s /= 2
    return num_hits, num_starts


def _row(
    name: str, out: Path, *, num_starts: int, expected: Mapping[str, str]
) -> tuple[str, int, int, int, int]:
    found = digest_run(out)
    same = sum(found.get(path) == digest for path, digest in expected.items())
    return (name, num_starts, len(expected), same, len(found.keys() - expected.keys()))
