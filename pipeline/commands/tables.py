"""Turn records into tables for the terminal, and into plain data for machines."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Literal

from rich.table import Table

from pipeline.commands.say import one_line
from pipeline.funnel import FunnelRow


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table; columns of numbers, by their first row, are aligned to the right.

    Title and cells are shown as they are: they may be text of a repository.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    heading = one_line(title, style="table.title") if title else None
    made = Table(title=heading, title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        is_number = bool(cells) and cells[0][number].lstrip("-").replace(".", "", 1).isdigit()
        justify: Literal["left", "right"] = "right" if is_number else "left"
        made.add_column(name, justify=justify, overflow="fold", no_wrap=number == 0)
    for row in cells:
        made.add_row(*map(one_line, row))
    return made


def funnel_table(rows: Sequence[FunnelRow]) -> Table:
    """Return the funnel: stage, in, out, why the rest was rejected."""
    return table(
        "",
        ("stage", "counts", "in", "out", "rejected because"),
        (
            (
                row.stage,
                row.unit,
                row.num_in,
                row.num_out,
                ", ".join(f"{count} {reason}" for reason, count in row.reasons),
            )
            for row in rows
        ),
    )


def funnel_json(rows: Sequence[FunnelRow]) -> list[dict[str, object]]:
    """Return the funnel as plain data."""
    return [{**asdict(row), "reasons": dict(row.reasons)} for row in rows]
