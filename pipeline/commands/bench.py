"""`regrow bench`: measure a claim here and now."""

import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline.bench import (
    factory,
    hacks,
    hardening,
    leaks,
    libraries,
    monitor,
    quickstart,
    repeat,
    sandbox,
    trace,
)
from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.report import Report
from pipeline.commands.say import (
    BAD_INPUT,
    BROKEN_MACHINE,
    INTERRUPTED,
    OUT,
    end,
    one_line_errors,
    print_json,
)
from pipeline.commands.tables import table

BenchName = Literal[
    "quickstart",
    "libraries",
    "repeat",
    "sandbox",
    "hardening",
    "hacks",
    "leaks",
    "monitor",
    "trace",
    "factory",
]

BENCHES: dict[BenchName, Callable[..., Report]] = {
    "quickstart": quickstart.measure,
    "libraries": libraries.measure,
    "repeat": repeat.measure,
    "sandbox": sandbox.measure,
    "hardening": hardening.measure,
    "hacks": hacks.measure,
    "leaks": leaks.measure,
    "monitor": monitor.measure,
    "trace": trace.measure,
    "factory": factory.measure,
}


def bench(
    name: Annotated[BenchName, typer.Argument(help="What to measure.")],
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, for the tests.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Empty folder for what the bench makes; else it is thrown away."),
    ] = None,
    peer: Annotated[
        Path | None,
        typer.Option(help="Folder with SWE-smith and what it needs, for `factory` to measure."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure one capability and print its claims; exit 0 when it measured, whatever holds."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with one_line_errors():
            report = _measure(name, quick=quick, keep=keep, peer=peer)
    except KeyboardInterrupt:
        end("stopped; nothing was measured", code=INTERRUPTED)
    if json:
        print_json(report.to_json())
        return
    OUT.print(table("", report.columns, report.rows), "")
    rows = [
        ("holds" if it.holds else "DOES NOT HOLD", it.claim, f"{it.figure:g}", it.bar)
        for it in report.claims
    ]
    OUT.print(table("", ("", "claim", "figure", "bar"), rows))


def _measure(name: BenchName, *, quick: bool, keep: Path | None, peer: Path | None) -> Report:
    if not REPOS.is_dir():
        end(f"{REPOS}: no such folder, expected a checkout of Regrow", code=BAD_INPUT)
    # What an earlier bench has done would be measured as done in no time.
    if keep is not None and keep.exists() and any(keep.iterdir()):
        end(f"{keep}: is not empty, expected a new folder", code=BAD_INPUT)
    measure = BENCHES[name] if peer is None else _with_peer(name, peer)
    try:
        if keep is not None:
            return measure(keep.absolute(), quick=quick)
        with tempfile.TemporaryDirectory(prefix="regrow-bench-") as folder:
            return measure(Path(folder), quick=quick)
    except CommandFailedError as error:
        end(str(error), code=BROKEN_MACHINE)


def _with_peer(name: BenchName, peer: Path) -> Callable[..., Report]:
    if name != "factory":
        end(f"--peer: bench {name} measures no peer, expected bench factory", code=BAD_INPUT)
    if not peer.is_dir():
        end(f"{peer}: no such folder, expected one with SWE-smith in it", code=BAD_INPUT)
    return partial(factory.measure, peer=peer.absolute())
