"""`regrow verify`: prove from the shards alone that each task of a run is right."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stop_on_signal
from pipeline.commands.say import ERR, OUT, existing_run, one_line, one_line_errors, print_json
from pipeline.commands.tables import table
from pipeline.desk import Folders
from pipeline.index import package_index
from pipeline.sandbox.choose import SandboxName, open_sandbox
from pipeline.task.shards import index_tasks
from pipeline.verify import Check, verify_run


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
    """Grade every task with the gold and the empty patch; fail if any grade is wrong."""
    with one_line_errors(), _own_scratch(cache_folder() / "scratch") as scratch:
        folders = Folders(
            run=existing_run(run).absolute(),
            cache=cache_folder(),
            index=package_index(),
            scratch=scratch,
        )
        num_checks = 2 * len(index_tasks(folders.run))
        box = open_sandbox(sandbox)
        stop_on_signal(box.stop, message="stopped; nothing is kept of a verification")
        found = verify_run(folders, sandbox=box, jobs=jobs or len(os.sched_getaffinity(0)))
        checks = list(track(found, "grading", total=num_checks, console=ERR))
    wrong = [check for check in checks if not check.is_right]
    if json:
        print_json(_summary(checks))
    else:
        _show(checks, wrong)
    if wrong or not checks:
        raise typer.Exit(1)


@contextmanager
def _own_scratch(folder: Path) -> Iterator[Path]:
    """Give a folder of this process alone, gone after the block; sweep those of killed ones."""
    for other in folder.glob("verify-*"):
        if not Path("/proc", other.name.removeprefix("verify-")).exists():
            shutil.rmtree(other, ignore_errors=True)
    own = folder / f"verify-{os.getpid()}"
    shutil.rmtree(own, ignore_errors=True)  # of a killed process that had the same number
    own.mkdir(parents=True)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _summary(checks: Iterable[Check]) -> dict[str, object]:
    checks = tuple(checks)
    return {
        "num_tasks": len(checks) // 2,
        "gold_solves": _share(checks, "gold"),
        "empty_fails": _share(checks, "empty"),
        "wrong": [
            {"task": it.task_id, "solver": it.solver, "detail": it.detail}
            for it in checks
            if not it.is_right
        ],
    }


def _share(checks: Iterable[Check], solver: str) -> float:
    counts = Counter(it.is_right for it in checks if it.solver == solver)
    return counts[True] / max(counts.total(), 1)


def _show(checks: list[Check], wrong: list[Check]) -> None:
    rows = [
        (
            "gold",
            "solved",
            sum(it.solver == "gold" for it in checks),
            f"{_share(checks, 'gold'):.0%}",
        ),
        (
            "empty",
            "unsolved",
            sum(it.solver == "empty" for it in checks),
            f"{_share(checks, 'empty'):.0%}",
        ),
    ]
    OUT.print(table("", ("patch", "must be", "tasks", "right"), rows))
    for check in wrong:
        OUT.print(one_line(f"WRONG {check.task_id} {check.solver}: {check.detail}"))
