"""Bench `libraries`: what the curated libraries give, of which sizes and kinds, and what fails."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.bench.command import REPOS, run
from pipeline.done import DoneStore
from pipeline.manifest import load_manifest
from pipeline.prepare import Prepared
from pipeline.task.claims import Claim, Report, at_least
from pipeline.task.patch import is_protected
from pipeline.task.record import FeatureKind, Task
from pipeline.task.reject import RejectRow
from pipeline.task.schema import from_row
from pipeline.task.shards import read_rejects, read_tasks

MANIFEST = REPOS / "python.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
MAX_TASKS = 36
LARGE_LINES = 60
# Of the candidates that are tried.
VALID_SHARE = 0.85
TRIED = ("deletion", "validation", "instruction", "leaks", "finalise")


def measure(folder: Path, *, quick: bool) -> Report:
    """Generate tasks of each library; a quick run takes one library and one task."""
    manifest = QUICK_MANIFEST if quick else MANIFEST
    out, max_tasks = folder / "run", 1 if quick else MAX_TASKS
    run(
        ("generate", manifest, "--out", out, "--max-tasks", str(max_tasks)),
        cache=folder / "cache",
    )
    names = [repo.name for repo in load_manifest(manifest)]
    tasks, rejects = list(read_tasks(out)), list(read_rejects(out))
    prepared = _read_prepared(out)
    return Report(
        bench="libraries",
        claims=(
            *_claims_of_libraries(names, tasks, rejects),
            at_least("share of tasks that remove code of 2 files", _share(tasks, _is_spread), 0.3),
            at_least("share of tasks that remove 60 lines", _share(tasks, _is_large), 0.15),
            at_least("tasks that remove whole files", _count(tasks, "module", "subpackage"), 10),
            at_least("tasks over several modules", _count(tasks, "cross-cutting"), 10),
        ),
        columns=(
            "library", "tests", "quarantined", "suite CPU s", "trace", "symbols", "candidates",
            "tried", "tasks", "valid", "two files", "60 lines", "whole files", "modules", "why not",
        ),
        rows=tuple(
            _row(name, prepared.get(name), tasks=tasks, rejects=rejects) for name in names
        ),
    )  # fmt: skip


def _claims_of_libraries(
    names: Sequence[str], tasks: Sequence[Task], rejects: Sequence[RejectRow]
) -> tuple[Claim, ...]:
    num_tasks = [sum(it.repo.name == name for it in tasks) for name in names]
    num_failed = [sum(row.repo == name and row.stage in TRIED for row in rejects) for name in names]
    valid = [
        made / (made + failed)
        for made, failed in zip(num_tasks, num_failed, strict=True)
        if made + failed
    ]
    silent = set(names) - {it.repo.name for it in tasks} - {row.repo for row in rejects}
    return (
        at_least("libraries", len(names), 60),
        at_least(
            "libraries with 85 % of the tried candidates valid",
            sum(share >= VALID_SHARE for share in valid),
            45,
        ),
        at_least("tasks of a library, median", statistics.median(num_tasks), 30),
        at_least("share of libraries that tell", 1 - len(silent) / len(names), 1.0),
    )


def _share(tasks: Sequence[Task], is_so: Callable[[Task], bool]) -> float:
    return round(sum(map(is_so, tasks)) / max(len(tasks), 1), 3)


def _is_spread(task: Task) -> bool:
    """Tell whether code of two files goes, tests and their configuration aside."""
    return sum(not is_protected(path) for path in task.deletion.paths) > 1


def _is_large(task: Task) -> bool:
    return task.deletion.num_removed_lines >= LARGE_LINES


def _count(tasks: Sequence[Task], *kinds: FeatureKind) -> int:
    return sum(task.feature.kind in kinds for task in tasks)


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
    made = [task for task in tasks if task.repo.name == name]
    failed = [row for row in mine if row.stage in TRIED]
    reasons = Counter(row.reason for row in failed)
    if prepared is None:
        why = "; ".join(f"{row.stage}: {row.reason}: {row.detail}" for row in mine)
        return (name, 0, 0, 0.0, 0.0, *(0,) * 9, why)
    num_found = len(made) + len(mine)
    return (
        name,
        len(prepared.baseline.passing),
        len(prepared.baseline.quarantined),
        round(min(prepared.baseline.cpu_s), 1),
        round(prepared.trace_ratio, 2),
        num_found,
        num_found - sum(row.stage == "feature" for row in mine),
        len(made) + len(failed),
        len(made),
        round(len(made) / max(len(made) + len(failed), 1), 2),
        sum(map(_is_spread, made)),
        sum(map(_is_large, made)),
        _count(made, "module", "subpackage"),
        _count(made, "cross-cutting"),
        ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()),
    )
