"""`regrow verify`: prove from the shards alone that each task of a run is right."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stoppable_sandbox
from pipeline.commands.say import (
    ERR,
    OUT,
    existing_run,
    notice,
    one_line,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import command_scratch
from pipeline.commands.tables import table
from pipeline.desk import Folders
from pipeline.index import package_index
from pipeline.sandbox.choose import SandboxName
from pipeline.task.shards import index_tasks
from pipeline.verify import Check, verify_run

STOPPED = "stopped; nothing is kept of a verification"


def verify(
    run: Annotated[Path, typer.Argument(help="Run folder that `regrow generate` wrote.")],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Sandboxes at work at once; the cores by default.")
    ] = None,
    sandbox: Annotated[
        SandboxName, typer.Option(help="Back end that runs untrusted code.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Grade every task with patches whose grade is known; fail if any grade is wrong."""
    with one_line_errors(), command_scratch(cache_folder() / "scratch") as scratch:
        folders = Folders(
            run=existing_run(run).absolute(),
            cache=cache_folder(),
            index=package_index(),
            scratch=scratch,
        )
        num_tasks = len(index_tasks(folders.run))
        with stoppable_sandbox(sandbox, message=STOPPED) as box:
            width = jobs or len(os.sched_getaffinity(0))
            found = verify_run(folders, sandbox=box, jobs=width, say=notice)
            by_task = list(track(found, "grading", total=num_tasks, console=ERR))
    checks = [check for checks in by_task for check in checks]
    wrong = [check for check in checks if not check.is_right]
    if json:
        print_json(_summary(checks, num_tasks=num_tasks))
    else:
        _show(checks)
    if wrong or not checks:
        raise typer.Exit(1)


def _summary(checks: Sequence[Check], *, num_tasks: int) -> dict[str, object]:
    return {
        "num_tasks": num_tasks,
        "gold_solves": _share(checks, "gold"),
        "empty_fails": _share(checks, "empty"),
        "right": {solver: _share(checks, solver) for solver in _solvers(checks)},
        "wrong": [
            {"task": it.task_id, "solver": it.solver, "detail": it.detail}
            for it in checks
            if not it.is_right
        ],
    }


def _solvers(checks: Iterable[Check]) -> list[str]:
    return list(dict.fromkeys(check.solver for check in checks))


def _share(checks: Iterable[Check], solver: str) -> float:
    counts = Counter(it.is_right for it in checks if it.solver == solver)
    return counts[True] / max(counts.total(), 1)


def _show(checks: Sequence[Check]) -> None:
    must_be = {check.solver: check.must_be for check in checks}
    rows = [
        (solver, must, sum(it.solver == solver for it in checks), f"{_share(checks, solver):.0%}")
        for solver, must in must_be.items()
    ]
    OUT.print(table("", ("patch", "must be", "tasks", "right"), rows))
    for check in checks:
        if not check.is_right:
            OUT.print(one_line(f"WRONG {check.task_id} {check.solver}: {check.detail}"))
