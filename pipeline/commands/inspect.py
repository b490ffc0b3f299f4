"""`regrow inspect`: the funnel of a run, or one task in full."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markdown import Markdown
from rich.rule import Rule
from rich.syntax import Syntax

from pipeline.agent.loop import read_transcript
from pipeline.commands.leaks import leak_lines, show_all, show_one
from pipeline.commands.say import (
    BAD_INPUT,
    OUT,
    end,
    existing_run,
    one_line,
    one_line_errors,
    print_json,
    printable,
)
from pipeline.commands.tables import funnel_json, funnel_table, table
from pipeline.funnel import count_funnel
from pipeline.image_report import image_lines
from pipeline.task.record import Task
from pipeline.task.schema import to_row
from pipeline.task.shards import read_rejects, read_tasks

MAX_TESTS = 20


def inspect(
    run: Annotated[Path, typer.Argument(help="Run folder that `regrow generate` wrote.")],
    task: Annotated[str | None, typer.Option(help="Id of a task, or the start of one.")] = None,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="With --task: how the agent deleted the feature.")
    ] = False,
    leaks: Annotated[
        bool, typer.Option("--leaks", help="What of the answers a solver could read.")
    ] = False,
    rejects: Annotated[bool, typer.Option("--rejects", help="List every reject.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the funnel and the tasks of a run; with --task, one task from request to evidence."""
    with one_line_errors():
        existing_run(run)
        if task is not None and transcript:
            _show_transcript(run, _find(run, task), as_json=json)
        elif task is not None and leaks:
            show_one(_find(run, task), as_json=json)
        elif task is not None:
            _show_task(run, _find(run, task), as_json=json)
        elif leaks:
            show_all(tuple(read_tasks(run)), as_json=json)
        elif rejects:
            _show_rejects(run, as_json=json)
        else:
            _show_run(run, as_json=json)


def _find(run: Path, prefix: str) -> Task:
    found = [it for it in read_tasks(run) if it.id.startswith(prefix)]
    exact = [it for it in found if it.id == prefix]
    if len(exact or found) != 1:
        end(f"{run}: {len(found)} tasks start with {prefix!r}, expected one", code=BAD_INPUT)
    return (exact or found)[0]


def _show_run(run: Path, *, as_json: bool) -> None:
    tasks = tuple(read_tasks(run))
    funnel = count_funnel(tasks, tuple(read_rejects(run)))
    if as_json:
        ids = [task.id for task in tasks]
        print_json({"funnel": funnel_json(funnel), "num_tasks": len(tasks), "tasks": ids})
        return
    OUT.print(funnel_table(funnel), "")
    rows = (
        (
            task.id,
            task.feature.title,
            task.feature.kind,
            len(task.deletion.paths),
            task.deletion.num_removed_lines,
            len(task.evidence.fail_to_pass),
            len(task.evidence.pass_to_pass),
        )
        for task in tasks
    )
    OUT.print(table("", ("task", "feature", "kind", "files", "lines", "F2P", "P2P"), rows))


def _show_rejects(run: Path, *, as_json: bool) -> None:
    rows = tuple(read_rejects(run))
    if as_json:
        print_json([to_row(row) for row in rows])
        return
    ordered = sorted(rows, key=lambda row: (row.repo, row.stage, row.reason, row.subject))
    cells = ((row.repo, row.subject, row.stage, row.reason, row.detail) for row in ordered)
    OUT.print(table("", ("repo", "subject", "stage", "reason", "detail"), cells))


def _show_task(run: Path, task: Task, *, as_json: bool) -> None:
    if as_json:
        print_json(to_row(task))
        return
    source = f"{task.repo.source.location} ({task.repo.licence}), released {task.snapshot.released}"
    feature = task.feature
    size = f"{feature.kind}, {feature.num_lines} lines of code in {feature.num_modules} modules"
    OUT.print(one_line(f"{task.id}: {feature.title}"), one_line(size), one_line(source), sep="\n")
    for line in image_lines(task, run=run):
        OUT.print(line, markup=False, highlight=False, soft_wrap=True)
    for instruction in task.instructions:
        OUT.print(Rule(one_line(f"instruction: {instruction.style}"), align="left"))
        OUT.print(Markdown(printable(instruction.text)))
    OUT.print(Rule("deletion", align="left"))
    OUT.print(Syntax(printable(task.deletion.patch), "diff", background_color="default"))
    if task.deletion.seams:
        OUT.print(one_line(f"went with it: {', '.join(task.deletion.seams)}"))
    OUT.print(Rule("leaks", align="left"))
    OUT.print(*map(one_line, leak_lines(task.leaks)), sep="\n")
    _show_evidence(task)


def _show_transcript(run: Path, task: Task, *, as_json: bool) -> None:
    turns = read_transcript((run / "transcripts" / f"{task.id}.jsonl").read_bytes())
    if as_json:
        print_json([to_row(turn) for turn in turns])
        return
    for number, turn in enumerate(turns, 1):
        OUT.print(Rule(f"{number}. {turn.tool}", align="left"))
        for text in (turn.thought, turn.arguments, turn.output):
            OUT.print(printable(text), markup=False)


def _show_evidence(task: Task) -> None:
    evidence = task.evidence
    targets = evidence.fail_to_pass
    OUT.print(Rule("evidence", align="left"))
    rows = ((it.id, it.ablated, it.symptom) for it in targets[:MAX_TESTS])
    OUT.print(table(f"fail to pass: {len(targets)}", ("test", "ablated", "symptom"), rows))
    OUT.print(
        f"pass to pass: {len(evidence.pass_to_pass)}",
        f"quarantined: {len(evidence.quarantined)}",
        f"mutants of the gold patch killed: {evidence.num_killed} of {evidence.num_mutants}",
        sep=", ",
    )
    runs = (
        (it.tree, it.num_passed, it.num_failed, it.num_error, it.num_missing)
        for it in evidence.runs
    )
    OUT.print(table("runs", ("tree", "passed", "failed", "error", "missing"), runs))
