"""Bench `repeat`: the same input gives the same bytes, whoever works and whatever is killed."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.bench.command import digest_run, run, start
from pipeline.bench.report import Report, at_least

MANIFEST = Path(__file__).parents[2] / "repos" / "quickstart.toml"
NUM_KILLS = 3


def measure(folder: Path, *, quick: bool) -> Report:
    """Run once undisturbed, then in each other way, and compare every file."""
    cache = folder / "cache"
    command = ("generate", MANIFEST, "--max-tasks", "1" if quick else "4")
    first = run((*command, "--out", folder / "first", "--jobs", "2"), cache=cache)
    expected = digest_run(folder / "first")
    ways: dict[str, Callable[[Path], int]] = {
        "once more": lambda out: _run((*command, "--out", out), cache),
        "one job": lambda out: _run((*command, "--out", out, "--jobs", "1"), cache),
        "plain loop": lambda out: _run((*command, "--out", out, "--runner", "plain"), cache),
        f"killed {NUM_KILLS} times": lambda out: _run_killed(
            (*command, "--out", out), cache, wall_s=first.wall_s
        ),
    }
    rows = []
    for name, way in ways.items():
        out = folder / name.replace(" ", "-")
        num_starts = way(out)
        found = digest_run(out)
        same = sum(found.get(path) == digest for path, digest in expected.items())
        rows.append((name, num_starts, len(expected), same, len(found.keys() - expected.keys())))
    return Report(
        bench="repeat",
        claims=tuple(
            at_least(f"share of files with the same bytes, {row[0]}", row[3] / row[2], 1.0)
            for row in rows
        ),
        columns=("way", "starts", "files", "same", "extra"),
        rows=tuple(rows),
    )


def _run(arguments: tuple[str | Path, ...], cache: Path) -> int:
    run(arguments, cache=cache)
    return 1


def _run_killed(arguments: tuple[str | Path, ...], cache: Path, *, wall_s: float) -> int:
    """Kill the command and all its processes at random moments, then let it end; count starts."""
    moments = random.Random(0)  # noqa: S311  moments, no secret
    for _ in range(NUM_KILLS):
        process = start(arguments, cache=cache)
        time.sleep(moments.uniform(0.1, 0.9) * wall_s / NUM_KILLS)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    run(arguments, cache=cache)
    return NUM_KILLS + 1
