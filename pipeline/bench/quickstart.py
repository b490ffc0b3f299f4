"""Bench `quickstart`: the main job on three libraries, from an empty cache, then proven twice."""

from pathlib import Path

from pipeline.bench.command import REPOS, run
from pipeline.bench.report import Claim, Report, at_least, at_most
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
    claims: list[Claim] = [
        at_least("tasks", len(tasks), 30),
        at_least("libraries that give tasks", len(names), 3),
        at_most("wall seconds of generate, empty cache", round(made.wall_s, 1), 600),
    ]
    for number, check in enumerate(checks, 1):
        gold, empty = check.answer["gold_solves"], check.answer["empty_fails"]
        assert isinstance(gold, float)
        assert isinstance(empty, float)
        claims.append(at_least(f"gold patches that solve, verify {number}", gold, 1.0))
        claims.append(at_most(f"empty patches that solve, verify {number}", 1.0 - empty, 0.0))
    rows = [
        (
            name,
            len(mine := [task for task in tasks if task.repo.name == name]),
            sum(task.feature.symbols[0].kind == "function" for task in mine),
            sum(task.feature.symbols[0].kind == "method" for task in mine),
            sum(task.feature.symbols[0].kind == "class" for task in mine),
        )
        for name in names
    ]
    return Report(
        bench="quickstart",
        claims=tuple(claims),
        columns=("library", "tasks", "functions", "methods", "classes"),
        rows=tuple(rows),
    )
