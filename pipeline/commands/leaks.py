"""Show what the scan of each task found, and what it did not read."""

from collections import Counter
from collections.abc import Sequence

from rich.rule import Rule

from pipeline.commands.say import OUT, one_line, print_json
from pipeline.commands.tables import table
from pipeline.task.certificate import Certificate
from pipeline.task.record import Task
from pipeline.task.schema import to_row

_MB = 1e6


def show_all(tasks: Sequence[Task], *, as_json: bool) -> None:
    """Show the verdict on each task of a run."""
    if as_json:
        print_json({task.id: to_row(task.leaks) for task in tasks})
        return
    rows = (
        (
            task.id,
            task.feature.title,
            task.leaks.verdict,
            task.leaks.num_files,
            f"{task.leaks.num_bytes / _MB:.1f}",
            _count(task.leaks),
        )
        for task in tasks
    )
    columns = ("task", "feature", "verdict", "files", "MB", "recorded")
    OUT.print(table("", columns, rows))


def show_one(task: Task, *, as_json: bool) -> None:
    """Show all that is known of whether a task's answer can be read."""
    if as_json:
        print_json(to_row(task.leaks))
        return
    for line in leak_lines(task.leaks):
        OUT.print(one_line(line))
    rows = (
        (
            "blocks" if it.blocks else "recorded",
            it.channel,
            " ".join((it.path, *it.decoders)),
            it.symbol,
            ", ".join(it.parts),
            f"{it.share:.2f}",
            it.rule,
        )
        for it in task.leaks.findings
    )
    columns = ("", "channel", "place", "symbol", "can be read", "share", "rule")
    OUT.print(table("findings", columns, rows))
    for title, lines in (
        ("not read", task.leaks.unread),
        ("too short or common to be told from other code", task.leaks.unprovable),
    ):
        if lines:
            OUT.print(Rule(title, align="left"))
            OUT.print(*map(one_line, lines), sep="\n")


def leak_lines(leaks: Certificate) -> tuple[str, ...]:
    """Return what a Certificate says in a few lines."""
    scanned = f"{leaks.num_files} files, {leaks.num_bytes / _MB:.1f} MB with what was decoded"
    return (
        f"verdict: {leaks.verdict}; scanned besides the system: {scanned}",
        f"findings: {_count(leaks) or 'none'}; fingerprints: {leaks.prints[:12]}",
    )


def _count(leaks: Certificate) -> str:
    channels = Counter(it.channel for it in leaks.findings)
    return ", ".join(f"{count} {channel}" for channel, count in channels.most_common())
