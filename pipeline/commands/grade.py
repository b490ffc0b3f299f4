"""`regrow grade`: judge one patch for one task, or check a receipt by grading again."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stoppable_sandbox
from pipeline.commands.say import (
    BAD_INPUT,
    BROKEN_MACHINE,
    ERR,
    OUT,
    end,
    existing_run,
    notice,
    one_line,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import command_scratch
from pipeline.commands.tables import table
from pipeline.desk import Folders, reopen_desk
from pipeline.images import restore_images
from pipeline.index import package_index
from pipeline.sandbox.choose import SandboxName
from pipeline.task.grade import Grade
from pipeline.task.grade import grade as grade_patch
from pipeline.task.receipt import Receipt, difference, read_receipt, write_receipt
from pipeline.task.record import Task
from pipeline.task.shards import index_tasks, read_task

MAX_BROKEN = 20


def grade(
    run: Annotated[Path, typer.Argument(help="Run folder that `regrow generate` wrote.")],
    task: Annotated[str | None, typer.Option(help="Id of a task, or the start of one.")] = None,
    patch: Annotated[
        Path | None, typer.Option(help="Unified diff from the task's solve tree.")
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(help="Where the receipt goes; without --patch: the one to grade again."),
    ] = None,
    sandbox: Annotated[
        SandboxName, typer.Option(help="Back end that runs untrusted code.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Grade a patch for a task; or grade a receipt's own patch again and fail if it differs."""
    existing_run(run)
    old = _read_old(receipt) if patch is None else None
    text = _read_patch(patch) if patch is not None else old.patch if old else ""
    _check_receipt(receipt, old, task=task)
    with one_line_errors():
        found = _find(run, task if old is None else old.task)
        result = _graded(found, text, run=run, sandbox=sandbox)
    if old is not None:
        _compare(old, result, as_json=json)
        return
    _show(result, as_json=json)
    if receipt is not None:
        with one_line_errors():
            receipt.write_text(write_receipt(result.receipt), encoding="ascii")
    if result.verdict == "invalid":
        raise typer.Exit(BROKEN_MACHINE)


def _read_old(path: Path | None) -> Receipt:
    if path is None:
        end("nothing to grade: expected --task with --patch, or --receipt", code=BAD_INPUT)
    try:
        return read_receipt(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        end(f"{path}: {error}", code=BAD_INPUT)


def _check_receipt(path: Path | None, old: Receipt | None, *, task: str | None) -> None:
    """Refuse a receipt of another task, and one that could not be written in the end."""
    if old is not None and not old.task.startswith(task or ""):
        end(f"{path}: a receipt of {old.task}, expected one of {task}", code=BAD_INPUT)
    if path is not None and not path.absolute().parent.is_dir():
        end(f"{path}: expected a file in a folder that is there", code=BAD_INPUT)


def _read_patch(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        end(f"{path}: {error.strerror}, expected a unified diff", code=BAD_INPUT)


def _find(run: Path, prefix: str | None) -> Task:
    places = index_tasks(run)
    found = [key for key in places if prefix is not None and key.startswith(prefix)]
    exact = [key for key in found if key == prefix]
    if len(exact or found) != 1:
        detail = f"{len(found)} tasks start with {prefix!r}" if prefix else "no --task is named"
        end(f"{run}: {detail}, expected one of {len(places)}", code=BAD_INPUT)
    return read_task(places[(exact or found)[0]])


def _graded(task: Task, patch: str, *, run: Path, sandbox: SandboxName) -> Grade:
    with (
        command_scratch(cache_folder() / "scratch") as scratch,
        stoppable_sandbox(sandbox, message="stopped; nothing was graded") as box,
    ):
        folders = Folders(
            run=run.absolute(), cache=cache_folder(), index=package_index(), scratch=scratch
        )
        desk = reopen_desk(
            task.snapshot,
            task.environment,
            command=task.repo.test,
            folders=folders,
            sandbox=box,
        )
        if line := restore_images(task, desk=desk):
            notice(line)
        return grade_patch(task, patch, desk=desk)


def _compare(old: Receipt, result: Grade, *, as_json: bool) -> None:
    """Say whether a second grade agrees; fail when it does not."""
    found = difference(old, result.receipt)
    if as_json:
        print_json({"task": old.task, "verdict": old.verdict, "difference": found})
    elif not found:
        OUT.print(one_line(f"{old.task}: {old.verdict}, as the receipt says"))
    else:
        ERR.print(one_line(f"DIFFERS {old.task}: {found}"), soft_wrap=True)
    if found:
        raise typer.Exit(BROKEN_MACHINE)


def _show(result: Grade, *, as_json: bool) -> None:
    if as_json:
        print_json({
            "verdict": result.verdict,
            "detail": result.detail,
            "broken": [{"id": key, "outcome": outcome} for key, outcome in result.broken],
            "num_expected": result.num_expected,
            "receipt": asdict(result.receipt),
        })
        return
    OUT.print(one_line(f"{result.receipt.task}: {result.verdict}"))
    if result.detail:
        OUT.print(one_line(result.detail), soft_wrap=True)
    aside = [it for it in result.receipt.decisions if it.decision != "kept"]
    if aside:
        rows = [(it.path, it.decision, it.reason) for it in aside]
        OUT.print(table("paths", ("path", "decision", "reason"), rows))
    if result.broken:
        title = f"broken: {len(result.broken)} of {result.num_expected}"
        OUT.print(table(title, ("test", "outcome"), result.broken[:MAX_BROKEN]))
