"""Bench `repeat`: the same input gives the same bytes, whoever works and whatever is killed."""

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.bench.command import REPOS, digest_run, run, start
from pipeline.bench.report import Report, at_least

MANIFEST = REPOS / "quickstart.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
NUM_KILLS = 3


def measure(folder: Path, *, quick: bool) -> Report:
    """Run once undisturbed, then in each other way, and compare every file."""
    cache = folder / "cache"
    manifest = QUICK_MANIFEST if quick else MANIFEST
    command: tuple[str | Path, ...] = ("generate", manifest, "--max-tasks", "1" if quick else "4")
    first = run((*command, "--out", folder / "first", "--jobs", "2"), cache=cache)
    expected = digest_run(folder / "first")
    ways: dict[str, tuple[str, ...]] = {
        "once more": (),
        "one job": ("--jobs", "1"),
        "plain loop": ("--runner", "plain"),
        "killed three times": (),
    }
    rows = []
    for name, options in ways.items():
        out = folder / name.replace(" ", "-")
        arguments = (*command, "--out", out, *options)
        num_kills = NUM_KILLS if name.startswith("killed") else 0
        _kill_and_run(arguments, cache=cache, num_kills=num_kills, wall_s=first.wall_s)
        found = digest_run(out)
        same = sum(found.get(path) == digest for path, digest in expected.items())
        rows.append((name, num_kills + 1, len(expected), same, len(found.keys() - expected.keys())))
    return Report(
        bench="repeat",
        claims=tuple(
            at_least(f"share of files with the same bytes, {row[0]}", row[3] / row[2], 1.0)
            for row in rows
        ),
        columns=("way", "starts", "files", "same", "extra"),
        rows=tuple(rows),
    )


def _kill_and_run(
    arguments: Sequence[str | Path], *, cache: Path, num_kills: int, wall_s: float
) -> None:
    """Kill the command at random moments, then let it end."""
    moments = random.Random(0)  # noqa: S311  moments, no secret
    for _ in range(num_kills):
        process = start(arguments, cache=cache)
        time.sleep(moments.uniform(0.1, 0.9) * wall_s / num_kills)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    run(arguments, cache=cache)
