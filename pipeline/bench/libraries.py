"""Bench `libraries`: how many of the curated libraries give tasks, and what became of the rest."""

from collections import Counter
from pathlib import Path

from pipeline.bench.command import REPOS, run
from pipeline.bench.report import Report, at_least
from pipeline.done import DoneStore
from pipeline.manifest import load_manifest
from pipeline.prepare import Prepared
from pipeline.task.record import RejectRow, Task
from pipeline.task.schema import from_row
from pipeline.task.shards import read_rejects, read_tasks

MANIFEST = REPOS / "python.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
MAX_TASKS = 5
TRIED = ("deletion", "validation", "instruction", "finalise")


def measure(folder: Path, *, quick: bool) -> Report:
    """Generate five tasks a library; a quick run takes one library and one task."""
    manifest = QUICK_MANIFEST if quick else MANIFEST
    out, max_tasks = folder / "run", 1 if quick else MAX_TASKS
    run(
        ("generate", manifest, "--out", out, "--max-tasks", str(max_tasks)),
        cache=folder / "cache",
    )
    names = [repo.name for repo in load_manifest(manifest)]
    tasks, rejects = list(read_tasks(out)), list(read_rejects(out))
    prepared = _read_prepared(out)
    giving = {task.repo.name for task in tasks}
    silent = [name for name in names if name not in giving | {row.repo for row in rejects}]
    return Report(
        bench="libraries",
        claims=(
            at_least("libraries", len(names), 20),
            at_least("libraries that give tasks", len(giving), 15),
            at_least(
                "share of libraries without tasks whose rejects say why",
                1.0 - len(silent) / max(len(names), 1),
                1.0,
            ),
        ),
        columns=(
            "library", "tests", "quarantined", "suite CPU s", "trace", "symbols", "candidates",
            "tried", "tasks", "why not",
        ),
        rows=tuple(
            _row(name, prepared.get(name), tasks=tasks, rejects=rejects) for name in names
        ),
    )  # fmt: skip


def _read_prepared(out: Path) -> dict[str, Prepared]:
    store = DoneStore(out / "done")
    records = [record for key in list(store.keys()) if (record := store.get(key))]
    parts = [record["prepared"] for record in records if "prepared" in record]
    found = [from_row(Prepared, part) for part in parts if isinstance(part, dict)]
    return {it.repo.name: it for it in found}


def _row(
    name: str, prepared: Prepared | None, *, tasks: list[Task], rejects: list[RejectRow]
) -> tuple[object, ...]:
    mine = [row for row in rejects if row.repo == name]
    num_tasks = sum(task.repo.name == name for task in tasks)
    failed = [row for row in mine if row.stage in TRIED]
    reasons = Counter(row.reason for row in failed)
    if prepared is None:
        why = "; ".join(f"{row.stage}: {row.reason}: {row.detail}" for row in mine)
        return (name, 0, 0, 0.0, 0.0, 0, 0, 0, num_tasks, why)
    num_symbols = num_tasks + len(mine)
    return (
        name,
        len(prepared.baseline.passing),
        len(prepared.baseline.quarantined),
        round(min(prepared.baseline.cpu_s), 1),
        round(prepared.trace_ratio, 2),
        num_symbols,
        num_symbols - sum(row.stage == "feature" for row in mine),
        num_tasks + len(failed),
        num_tasks,
        ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()),
    )
