"""`regrow bench`: measure a claim here and now."""

import signal
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

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
from pipeline.task.claims import NotMeasuredError, Report

BENCHES: dict[str, Callable[..., Report]] = {
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


# Those of the trainer, which are loaded when they run.
OTHERS = {it.name: it for it in entry_points(group="regrow.benches")}
NAMES = ", ".join(sorted({*BENCHES, *OTHERS}))
# What each is measured beside, where it can be.
PEERS = {"factory": "SWE-smith", "muon": "dion", "trainer": "TRL"}
# Those that take a file of settings.
CONFIGURED = frozenset({"muon-scale"})
# A folder that such a bench was stopped in is gone on with.
RESUMED = frozenset({"targeted"})


def bench(
    name: Annotated[str, typer.Argument(help=f"What to measure: {NAMES}.")],
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, for the tests.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Empty folder for what the bench makes; else it is thrown away."),
    ] = None,
    peer: Annotated[
        Path | None,
        typer.Option(
            help="Folder with SWE-smith for `factory`, an environment with TRL for `trainer`, "
            "a checkout of dion for `muon`."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with the model and the clusters for `muon-scale`."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure one capability and print its claims; exit 0 when it measured, whatever holds."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with one_line_errors():
            report = _measure(name, quick=quick, keep=keep, peer=peer, config=config)
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


def _measure(
    name: str, *, quick: bool, keep: Path | None, peer: Path | None, config: Path | None
) -> Report:
    if not REPOS.is_dir():
        end(f"{REPOS}: no such folder, expected a checkout of Regrow", code=BAD_INPUT)
    measure = _find(name, peer=peer)
    if config is not None:
        measure = partial(measure, config=_config_for(name, config))
    # What an earlier bench has done would be measured as done in no time.
    if keep is not None and keep.exists() and any(keep.iterdir()) and name not in RESUMED:
        end(f"{keep}: is not empty, expected a new folder", code=BAD_INPUT)
    try:
        if keep is not None:
            return measure(keep.absolute(), quick=quick)
        with tempfile.TemporaryDirectory(prefix="regrow-bench-") as folder:
            return measure(Path(folder), quick=quick)
    except (CommandFailedError, NotMeasuredError) as error:
        end(str(error), code=BROKEN_MACHINE)


def _config_for(name: str, config: Path) -> Path:
    """Return the file of settings of a bench that takes one."""
    if name not in CONFIGURED:
        known = ", ".join(sorted(CONFIGURED))
        end(f"--config: bench {name} takes no settings, expected one of {known}", code=BAD_INPUT)
    if not config.is_file():
        end(f"{config}: no such file, expected a TOML file with settings", code=BAD_INPUT)
    return config.absolute()


def _find(name: str, *, peer: Path | None) -> Callable[..., Report]:
    """Return what measures a claim, perhaps beside a peer."""
    if name not in BENCHES and name not in OTHERS:
        end(f"there is no bench {name}, expected one of {NAMES}", code=BAD_INPUT)
    if peer is not None and name not in PEERS:
        known = ", ".join(sorted(PEERS))
        end(f"--peer: bench {name} measures no peer, expected one of {known}", code=BAD_INPUT)
    if peer is not None and not peer.is_dir():
        end(f"{peer}: no such folder, expected one with {PEERS[name]} in it", code=BAD_INPUT)
    try:
        measure = BENCHES[name] if name in BENCHES else OTHERS[name].load()
    except ImportError as error:
        end(f"bench {name} needs more packages: {error}", code=BROKEN_MACHINE)
    return measure if peer is None else partial(measure, peer=peer.absolute())
