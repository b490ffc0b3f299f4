"""`regrow generate`: the main job, with progress, clean stops and resume."""

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stop_on_signal
from pipeline.commands.lock import held
from pipeline.commands.say import (
    BAD_INPUT,
    BROKEN_MACHINE,
    ERR,
    INTERRUPTED,
    OUT,
    complain,
    end,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import temporaries_in
from pipeline.commands.tables import funnel_json, funnel_table
from pipeline.config import AgentName, RunnerName, Settings
from pipeline.factory import Factory, shared_factory
from pipeline.finalise import IncompleteRunError, Outcome, finalise
from pipeline.funnel import REPO_STAGES, count_funnel
from pipeline.image_report import summary_line
from pipeline.index import package_index
from pipeline.manifest import load_manifest
from pipeline.pool import EvidenceMode
from pipeline.progress import Tally, make_bars
from pipeline.sandbox.choose import SandboxName
from pipeline.sandbox.protocol import SandboxStoppedError
from pipeline.selection import Choice, Size
from pipeline.steps import generate as generate_plainly
from pipeline.task.manifest import MANIFEST, read_manifest
from pipeline.task.origin import Repo
from pipeline.task.record import FeatureKind
from pipeline.task.reject import Reject

POLL_S = 0.3

Name = TypeVar("Name", bound=str)

STOPPED = "stopped; what was done is kept, the same command goes on"


Manifest = Annotated[
    Path, typer.Argument(help="TOML file of Repos, such as repos/quickstart.toml.")
]
Out = Annotated[Path, typer.Option(help="Run folder; the same command resumes what is there.")]
MaxTasks = Annotated[
    int | None, typer.Option(min=1, help="Tasks wanted of each Repo; all by default.")
]
Kinds = Annotated[
    str, typer.Option(help="Kinds of features wanted, comma-separated; all by default.")
]
Sizes = Annotated[str, typer.Option(help="Sizes wanted: small, medium, large, comma-separated.")]
Seed = Annotated[int, typer.Option(help="Seed of the choice and order of features.")]
Evidence = Annotated[
    EvidenceMode,
    typer.Option(help="Whether a deletion has a whole run of the suite to itself or shares it."),
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Sandboxes at work at once; the cores by default.")
]
BackEnd = Annotated[SandboxName, typer.Option(help="Back end that runs untrusted code.")]
Agent = Annotated[AgentName, typer.Option(help="Who deletes the features.")]
Runner = Annotated[
    RunnerName, typer.Option(help="`laptop` is Beam in this process, `plain` a loop.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")]


def generate(
    manifest: Manifest,
    out: Out,
    max_tasks: MaxTasks = None,
    kinds: Kinds = "",
    size: Sizes = "",
    seed: Seed = 0,
    evidence: Evidence = "individual",
    jobs: Jobs = None,
    sandbox: BackEnd = "auto",
    agent: Agent = "scripted",
    runner: Runner = "laptop",
    json: Json = False,
) -> None:
    """Make tasks from the Repos of a manifest: Parquet shards of tasks and of rejects."""
    with one_line_errors():
        repos = load_manifest(manifest)
        _check_out(out)
        settings = Settings(
            out=out.absolute(),
            cache=cache_folder(),
            index=package_index(),
            manifest_folder=manifest.absolute().parent,
            choice=Choice(
                max_tasks=max_tasks,
                kinds=_chosen("--kinds", kinds, known=get_args(FeatureKind)),
                sizes=_chosen("--size", size, known=get_args(Size)),
                seed=seed,
            ),
            jobs=jobs or len(os.sched_getaffinity(0)),
            evidence=evidence,
            sandbox=sandbox,
            agent=agent,
        )
        outcome = _run(repos, settings, runner=runner)
    _report(outcome, settings, as_json=json)


def _chosen(option: str, text: str, *, known: tuple[Name, ...]) -> tuple[Name, ...]:
    """Return the names in a comma-separated list, in the order in which they are known."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [it for it in named if it not in known]:
        end(f"{option}: {unknown[0]!r}, expected some of {', '.join(known)}", code=BAD_INPUT)
    return tuple(it for it in known if it in named)


def _check_out(out: Path) -> None:
    """Refuse a folder that another schema version wrote, before anything is touched."""
    if out.exists() and not out.is_dir():
        end(f"{out}: is a file, expected a folder or nothing", code=BAD_INPUT)
    if (out / MANIFEST).exists():
        read_manifest(out)


def _run(repos: Sequence[Repo], settings: Settings, *, runner: RunnerName) -> Outcome:
    """Carry out every unit of work that is not done, and write what all of them came to."""
    with _claimed(settings):
        factory = shared_factory(settings)
        try:
            run = _runner(runner)
            _work(lambda: run(repos, settings), repos=repos, factory=factory)
            return _finalise(repos, factory)
        finally:
            factory.stop()


@contextlib.contextmanager
def _claimed(settings: Settings) -> Iterator[None]:
    """Hold the run folder for this process alone, and keep its scratch folder empty."""
    settings.out.mkdir(parents=True, exist_ok=True)
    with held(settings.out):
        scratch = settings.folders.scratch
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            with temporaries_in(scratch / "temporary"):
                yield
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _runner(name: RunnerName) -> Callable[[Sequence[Repo], Settings], None]:
    if name == "plain":
        return _run_plainly
    logging.getLogger().setLevel(logging.ERROR)  # Beam warns of every extra it could have
    # The one late import: Beam takes seconds, and only this command needs it.
    from pipeline.runners import run_laptop  # noqa: PLC0415

    return run_laptop


def _run_plainly(repos: Sequence[Repo], settings: Settings) -> None:
    for _ in generate_plainly(repos, factory=shared_factory(settings), jobs=settings.jobs):
        pass


def _work(run: Callable[[], None], *, repos: Sequence[Repo], factory: Factory) -> None:
    """Run in a thread, so that this one can draw and be interrupted; end when stopped."""
    stopped = stop_on_signal(lambda: _stop(factory), message=STOPPED)
    failures: list[BaseException] = []

    def target() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            failures.append(error)

    factory.start(repos)
    worker = threading.Thread(target=target, name="run", daemon=True)
    worker.start()
    _draw(worker, Tally(repos=repos, factory=factory, on_repo=_say_repo))
    if stopped.is_set():
        end(STOPPED, code=INTERRUPTED)
    if failures and not isinstance(failures[0], SandboxStoppedError):
        raise failures[0]


def _stop(factory: Factory) -> None:
    # Beam would say of each unit at work where it was stopped.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    factory.stop()


def _draw(worker: threading.Thread, tally: Tally) -> None:
    with make_bars(ERR) as bars:
        repos = bars.add_task("repos", total=len(tally.repos), note="")
        slots = bars.add_task("tasks", total=None, note="")
        while True:
            alive = worker.is_alive()
            tally.update()
            bars.update(repos, completed=len(tally.settled))
            note = f"{tally.num_tasks} valid" if tally.num_filled else ""
            bars.update(slots, completed=tally.num_filled, total=tally.num_slots or None, note=note)
            if not alive:
                return
            worker.join(POLL_S)


def _say_repo(repo: Repo, num_slots: int, reject: Reject | None) -> None:
    if reject is None:
        ERR.print(f"{repo.name}: prepared, {num_slots} slots to fill", markup=False)
    else:
        ERR.print(f"{repo.name}: {reject.stage}: {reject.reason}", markup=False)


def _finalise(repos: Sequence[Repo], factory: Factory) -> Outcome:
    if factory.failures:
        first = " ".join(next(iter(factory.failures.values())).split())
        num = len(factory.failures)
        end(f"{first}; {num} units failed, run the same command again", code=BROKEN_MACHINE)
    try:
        return finalise(repos, factory=factory)
    except IncompleteRunError as error:
        end(str(error), code=BROKEN_MACHINE)


def _report(outcome: Outcome, settings: Settings, *, as_json: bool) -> None:
    funnel = count_funnel(outcome.tasks, outcome.rejects)
    if as_json:
        print_json({
            "out": str(settings.out),
            "num_tasks": len(outcome.tasks),
            "funnel": funnel_json(funnel),
        })
    else:
        OUT.print(funnel_table(funnel))
        repos = len({task.repo.name for task in outcome.tasks})
        OUT.print(f"{len(outcome.tasks)} tasks from {repos} repos in {settings.out}", markup=False)
        if images := summary_line(outcome.tasks, run=settings.out):
            OUT.print(images, markup=False)
    bad = [row for row in outcome.rejects if row.stage in REPO_STAGES]
    for row in bad:
        complain(f"{row.repo}: {row.stage}: {row.reason}: {row.detail}")
    if bad:
        raise typer.Exit(BAD_INPUT)
