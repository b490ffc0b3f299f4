"""`regrow solve`: have an agent try the tasks of a run, and tell how hard they are for it."""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

from rich.progress import track

from pipeline.agent.chat.budget import Budget, BudgetError
from pipeline.agent.chat.policy import Model
from pipeline.agent.chat.server import Pace, Server, ServerError, check_url
from pipeline.cache import cache_folder
from pipeline.commands import solve_options as options
from pipeline.commands.interrupt import stoppable_sandbox
from pipeline.commands.lock import held
from pipeline.commands.say import (
    BAD_INPUT,
    BROKEN_MACHINE,
    ERR,
    OUT,
    complain,
    end,
    existing_run,
    notice,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import command_scratch
from pipeline.commands.tables import table
from pipeline.desk import Folders, reopen_desk
from pipeline.difficulty.rates import TaskRate, task_rates
from pipeline.done import DoneStore
from pipeline.index import package_index
from pipeline.monitor.verdict import Weighing
from pipeline.review import Review, review_run
from pipeline.sandbox.choose import SandboxName
from pipeline.sandbox.protocol import Sandbox
from pipeline.solve import AgentName, Lost, Solver, solve
from pipeline.task.attempt import Attempt
from pipeline.task.attempt_shards import read_attempts, write_attempts
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from pipeline.task.shards import read_tasks

STOPPED = "stopped; attempts that ended are kept, the same command goes on"
COLUMNS = ("task", "feature", "solved", "of", "rate", "90 % bounds")


def solve_command(
    run: options.Run,
    agent: options.Agent,
    attempts: options.Attempts = 4,
    endpoint: options.Endpoint = None,
    model: options.ModelName = None,
    max_tokens: options.MaxTokens = None,
    max_usd: options.MaxUsd = None,
    usd_in: options.UsdIn = 0.0,
    usd_out: options.UsdOut = 0.0,
    per_minute: options.PerMinute = 0.0,
    temperature: options.Temperature = 1.0,
    max_new_tokens: options.MaxNewTokens = 4096,
    timeout: options.Timeout = 600.0,
    skill: options.Skill = 0.5,
    style: options.Style = "",
    max_turns: options.MaxTurns = 50,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    sandbox: options.BackEnd = "auto",
    json: options.Json = False,
) -> None:
    """Have an agent try every task some times; attempts and their verdicts are kept in the run."""
    existing_run(run)
    asked = None
    if server := _server(agent, endpoint, model, per_minute=per_minute, timeout_s=timeout):
        asked = Model(
            server=server,
            budget=_budget(max_tokens, max_usd, usd_in=usd_in, usd_out=usd_out),
            temperature=temperature,
            max_new_tokens=max_new_tokens,
        )
    how = Solver(agent=agent, model=asked, skill=skill, style=style, seed=seed, max_turns=max_turns)
    with one_line_errors(), held(run):
        tasks = _tasks(run, style=style)
        tries = [(task, number) for task in tasks for number in range(attempts)]
        stop = _solve(run.absolute(), tries, solver=how, jobs=jobs, sandbox=sandbox)
        _report(run, tasks, how, as_json=json)
    _end_early(stop)


def _end_early(why: str) -> None:
    """End the command where it had to stop before all was done."""
    if why:
        end(why, code=BROKEN_MACHINE)


def _server(
    agent: AgentName,
    endpoint: str | None,
    model: str | None,
    *,
    per_minute: float,
    timeout_s: float,
) -> Server | None:
    """Return whom to ask; None where nobody is."""
    if agent != "chat":
        if endpoint is not None or model is not None:
            end(f"--endpoint and --model belong to --agent chat, not to {agent}", code=BAD_INPUT)
        return None
    if endpoint is None or model is None:
        end("--agent chat needs --endpoint URL and --model NAME", code=BAD_INPUT)
    try:
        check_url(endpoint)
    except ValueError as error:
        end(f"--endpoint: {error}", code=BAD_INPUT)
    pace = Pace(per_minute=per_minute)
    return Server(url=endpoint, model=model, timeout_s=timeout_s, pace=pace)


def _budget(
    max_tokens: int | None, max_usd: float | None, *, usd_in: float, usd_out: float
) -> Budget:
    if max_usd is not None and max_usd <= 0:
        end(f"--max-usd {max_usd:g}: expected more than 0", code=BAD_INPUT)
    if max_usd is not None and not (usd_in or usd_out):
        end("--max-usd without --usd-in or --usd-out: nothing would ever cost", code=BAD_INPUT)
    return Budget(max_tokens=max_tokens, max_usd=max_usd, usd_in=usd_in, usd_out=usd_out)


def _tasks(run: Path, *, style: str) -> list[Task]:
    tasks = sorted(read_tasks(run), key=lambda it: it.id)
    if not tasks:
        end(f"{run}: holds no tasks, expected some to try", code=BAD_INPUT)
    for task in tasks:
        styles = [it.style for it in task.instructions]
        if style and style not in styles:
            end(f"--style {style!r}: {task.id} has {', '.join(styles)}", code=BAD_INPUT)
    return tasks


def _solve(
    run: Path,
    tries: Sequence[tuple[Task, int]],
    *,
    solver: Solver,
    jobs: int | None,
    sandbox: SandboxName,
) -> str:
    """Make the tries and keep them; return why it stopped early, empty when it did not."""
    found: list[Attempt] = []
    lost: list[Lost] = []
    why = ""
    try:
        for it in _made(run, tries, solver=solver, jobs=jobs, sandbox=sandbox):
            found += [it] if isinstance(it, Attempt) else []
            lost += [it] if isinstance(it, Lost) else []
    except BudgetError as error:
        why = f"{error}; allow more, and the same command goes on"
    except ServerError as error:
        why = f"{error}; attempts that ended are kept, the same command goes on"
    finally:
        _keep(run, found)
    for it in lost:
        complain(f"{it.task_id}: try {it.number} is lost: {it.why}")
    if lost and not why:
        why = f"{len(lost)} tries came to no verdict, run the same command again"
    if found:
        _review(run)
    return why


def _made(
    run: Path,
    tries: Sequence[tuple[Task, int]],
    *,
    solver: Solver,
    jobs: int | None,
    sandbox: SandboxName,
) -> Iterator[Attempt | Lost]:
    """Yield what each try came to, those that were made before among them."""
    # Not those of `regrow generate`, which it may sweep away.
    done = DoneStore(run / "solving")
    done.sweep()
    with (
        command_scratch(cache_folder() / "scratch") as scratch,
        stoppable_sandbox(sandbox, message=STOPPED) as box,
    ):
        open_desk = _desks(run, scratch=scratch, sandbox=box)
        width = jobs or len(os.sched_getaffinity(0))
        made = solve(tries, solver=solver, open_desk=open_desk, done=done, jobs=width)
        yield from track(made, "attempts", total=len(tries), console=ERR, transient=True)


def _review(run: Path) -> None:
    """Have the monitor look at what it has not seen."""
    review_run(
        Review(run=run, cache=cache_folder(), weighing=Weighing(), judge=None, done=lambda _: None)
    )


def _keep(run: Path, found: Sequence[Attempt]) -> None:
    """Put attempts into the run's shards, beside those of others; a verdict that is there stays.

    Those of the same agent under other settings make room.
    """
    if not found:
        return
    kept = {it.id: it for it in read_attempts(run)}
    same = {it.id for it in found if replace(kept.get(it.id, it), monitored=None) == it}
    new = {it.id: it for it in found if it.id not in same.intersection(kept)}
    write_attempts(run, (kept | new).values())


def _desks(run: Path, *, scratch: Path, sandbox: Sandbox) -> Callable[[Task], Desk]:
    """Return what opens a Task's desk; those of one library share it."""
    folders = Folders(run=run, cache=cache_folder(), index=package_index(), scratch=scratch)
    opened: dict[Hashable, Desk] = {}
    turn = Lock()

    def open_desk(task: Task) -> Desk:
        key = (task.snapshot, task.environment)
        with turn:
            if key not in opened:
                opened[key] = reopen_desk(
                    task.snapshot,
                    task.environment,
                    command=task.repo.test,
                    folders=folders,
                    sandbox=sandbox,
                )
            return opened[key]

    return open_desk


def _report(run: Path, tasks: Sequence[Task], solver: Solver, *, as_json: bool) -> None:
    who = solver.who
    mine = [it for it in read_attempts(run) if (it.agent, it.model) == (who.name, who.model)]
    rates = task_rates(mine)
    if solver.model is not None and not solver.model.has_tools:
        notice("the server takes no tools: calls were read from the model's text")
    if as_json:
        print_json(_as_json(mine, rates, solver))
        return
    titles = {task.id: task.feature.title for task in tasks}
    rows = [
        (
            it.task_id,
            titles.get(it.task_id, ""),
            it.rate.solved,
            it.rate.tried,
            f"{it.rate.rate:.2f}",
            f"{it.rate.low:.2f} to {it.rate.high:.2f}",
        )
        for it in rates
    ]
    OUT.print(table("", COLUMNS, rows))
    verdicts = ", ".join(f"{num} {name}" for name, num in _verdicts(mine).most_common())
    OUT.print(f"{len(mine)} attempts: {verdicts or 'none'}", markup=False)
    if solver.model is not None:
        budget = solver.model.budget
        OUT.print(f"{budget.spent.num_tokens:,} tokens now, {budget.usd:.4f} US dollars")


def _verdicts(attempts: Sequence[Attempt]) -> Counter[str]:
    return Counter(it.verdict for it in attempts)


def _as_json(
    attempts: Sequence[Attempt], rates: Sequence[TaskRate], solver: Solver
) -> dict[str, object]:
    spent = None if solver.model is None else solver.model.budget
    return {
        "agent": solver.who.name,
        "model": solver.who.model,
        "num_attempts": len(attempts),
        "verdicts": _verdicts(attempts),
        "num_tokens": sum(it.num_tokens for it in attempts),
        "spent": spent and {"num_tokens": spent.spent.num_tokens, "usd": spent.usd},
        "tasks": [
            {
                "task": it.task_id,
                "solved": it.rate.solved,
                "tried": it.rate.tried,
                "rate": it.rate.rate,
                "low": it.rate.low,
                "high": it.rate.high,
            }
            for it in rates
        ],
    }
