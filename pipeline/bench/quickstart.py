"""Bench `quickstart`: the main job on three libraries, from an empty cache, then proven twice."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pipeline.bench.command import REPOS, Ended, run
from pipeline.task.claims import Claim, Report, at_least, at_most
from pipeline.task.record import FeatureKind, Task
from pipeline.task.shards import read_tasks

MANIFEST = REPOS / "quickstart.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
MAX_TASKS = 14


def measure(folder: Path, *, quick: bool) -> Report:
    """Generate, then verify twice; a quick run asks for one task of one library."""
    out, cache = folder / "run", folder / "cache"
    max_tasks = 1 if quick else MAX_TASKS
    made = run(
        (
            "generate",
            QUICK_MANIFEST if quick else MANIFEST,
            "--out",
            out,
            "--max-tasks",
            str(max_tasks),
        ),
        cache=cache,
    )
    checks = [run(("verify", out), cache=cache) for _ in range(2)]
    tasks = list(read_tasks(out))
    names = sorted({task.repo.name for task in tasks})
    return Report(
        bench="quickstart",
        claims=(
            at_least("tasks", len(tasks), 30),
            at_least("libraries that give tasks", len(names), 3),
            at_most("wall seconds of generate, empty cache", round(made.wall_s, 1), 600),
            *(claim for number, check in enumerate(checks, 1) for claim in _proof(number, check)),
        ),
        columns=("library", "tasks", *get_args(FeatureKind)),
        rows=tuple(_row(name, tasks) for name in names),
    )


def _proof(number: int, check: Ended) -> tuple[Claim, Claim]:
    gold, empty = check.answer["gold_solves"], check.answer["empty_fails"]
    assert isinstance(gold, float)
    assert isinstance(empty, float)
    return (
        at_least(f"gold patches that solve, verify {number}", gold, 1.0),
        at_most(f"empty patches that solve, verify {number}", 1.0 - empty, 0.0),
    )


def _row(name: str, tasks: Sequence[Task]) -> tuple[object, ...]:
    kinds = [task.feature.kind for task in tasks if task.repo.name == name]
    return (name, len(kinds), *map(kinds.count, get_args(FeatureKind)))
