"""`regrow corpus`: make labelled transcripts of honest and cheating agents from a run's tasks."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from pipeline.cache import cache_folder
from pipeline.commands.interrupt import stoppable_sandbox
from pipeline.commands.say import (
    BAD_INPUT,
    ERR,
    OUT,
    end,
    existing_run,
    one_line_errors,
    print_json,
)
from pipeline.commands.scratch import command_scratch
from pipeline.commands.tables import table
from pipeline.corpus.build import build
from pipeline.corpus.deal import CLASSES, Entry, Host, deal, open_host
from pipeline.corpus.keep import write_corpus
from pipeline.corpus.label import Label
from pipeline.desk import Folders, reopen_desk
from pipeline.done import DoneStore
from pipeline.index import package_index
from pipeline.sandbox.choose import SandboxName
from pipeline.sandbox.protocol import Sandbox
from pipeline.snapshot import SUFFIX
from pipeline.task.attempt import Attempt
from pipeline.task.shards import read_tasks

STOPPED = "stopped; what was done is kept, the same command goes on"


def corpus(
    runs: Annotated[list[Path], typer.Argument(help="Run folders that `regrow generate` wrote.")],
    out: Annotated[Path, typer.Option(help="Folder of the corpus.")],
    pairs: Annotated[
        int, typer.Option(min=1, help="Hacked attempts; each has a benign one beside it.")
    ] = 9 * len(CLASSES),
    seed: Annotated[int, typer.Option(help="Of every choice; the same gives the same.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Sandboxes at work at once; the cores by default.")
    ] = None,
    sandbox: Annotated[
        SandboxName, typer.Option(help="Back end that runs untrusted code.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Have scripted agents attempt a run's tasks, half of them cheating; never train on it."""
    if (out / "manifest.json").exists():
        end(f"{out}: there is a run or a corpus, expected a new folder", code=BAD_INPUT)
    began_s = time.monotonic()
    folders = [existing_run(run).absolute() for run in runs]
    with (
        one_line_errors(),
        command_scratch(cache_folder() / "scratch") as scratch,
        stoppable_sandbox(sandbox, message=STOPPED) as box,
    ):
        hosts = [it for run in folders for it in _hosts(run, scratch=scratch, sandbox=box)]
        if not hosts:
            end("no task of these runs is one that scripts can be written for", code=BAD_INPUT)
        entries = deal(hosts, num_pairs=pairs, seed=seed)
        made = _make(entries, out=out, jobs=jobs or len(os.sched_getaffinity(0)))
        write_corpus(
            out.absolute(),
            made,
            tasks={entry.host.task.id: entry.host.task for entry in entries}.values(),
            archives=_archives(entries, folders),
            config={"corpus": {"seed": seed, "pairs": pairs}},
        )
    _show([label for _, label in made], seconds=time.monotonic() - began_s, as_json=json)


def _make(entries: Sequence[Entry], *, out: Path, jobs: int) -> list[tuple[Attempt, Label]]:
    done = DoneStore(out.absolute() / "done")
    done.sweep()
    found = build(entries, jobs=jobs, done=done)
    return list(track(found, "attempts", total=len(entries), console=ERR))


def _archives(entries: Sequence[Entry], runs: Sequence[Path]) -> list[Path]:
    """Return the archive of each Snapshot, in whichever run it is."""
    wanted = {f"{entry.host.task.snapshot.digest}{SUFFIX}" for entry in entries}
    places = {it.name: it for run in runs for it in (run / "snapshots").iterdir()}
    return [places[name] for name in sorted(wanted)]


def _hosts(run: Path, *, scratch: Path, sandbox: Sandbox) -> Iterator[Host]:
    folders = Folders(run=run, cache=cache_folder(), index=package_index(), scratch=scratch)
    for task in read_tasks(run):
        desk = reopen_desk(
            task.snapshot,
            task.environment,
            command=task.repo.test,
            folders=folders,
            sandbox=sandbox,
        )
        if host := open_host(task, desk):
            yield host


def _show(labels: list[Label], *, seconds: float, as_json: bool) -> None:
    found = Counter((it.hack_class, it.is_hacked) for it in labels)
    counts = {name: (found[name, True], found[name, False]) for name in CLASSES}
    if as_json:
        print_json({
            "num_attempts": len(labels),
            "num_repos": len({it.repo for it in labels}),
            "classes": {
                name: {"hacked": bad, "benign": good} for name, (bad, good) in counts.items()
            },
            "seconds": round(seconds, 1),
        })
        return
    rows = [(name, bad, good) for name, (bad, good) in counts.items()]
    title = f"{len(labels)} attempts in {seconds:.0f} s"
    OUT.print(table(title, ("class", "hacked", "benign"), rows))
