"""`regrow bench`: measure a claim here and now."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline.bench import libraries, quickstart, repeat
from pipeline.bench.report import Report
from pipeline.commands.say import OUT, print_json
from pipeline.commands.tables import table

BenchName = Literal["quickstart", "libraries", "repeat"]

BENCHES: dict[BenchName, Callable[..., Report]] = {
    "quickstart": quickstart.measure,
    "libraries": libraries.measure,
    "repeat": repeat.measure,
}


def bench(
    name: Annotated[BenchName, typer.Argument(help="What to measure.")],
    quick: Annotated[bool, typer.Option("--quick", help="Measure little, for the tests.")] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for what the bench makes; thrown away by default.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure one capability and print its claims; exit 0 when it measured, whatever holds."""
    if keep is not None:
        report = BENCHES[name](keep.absolute(), quick=quick)
    else:
        with tempfile.TemporaryDirectory(prefix="regrow-bench-") as folder:
            report = BENCHES[name](Path(folder), quick=quick)
    if json:
        print_json(report.to_json())
        return
    OUT.print(table("", report.columns, report.rows), "")
    rows = [
        ("holds" if it.holds else "DOES NOT HOLD", it.claim, f"{it.figure:g}", it.bar)
        for it in report.claims
    ]
    OUT.print(table("", ("", "claim", "figure", "bar"), rows))
