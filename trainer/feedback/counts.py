"""Count what each detector found, and what became of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from trainer.feedback.scan import KINDS
from trainer.feedback.targets import Feedback
from trainer.records import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one detector did over some Episodes.

    Example: `Count(kind="unknown_tool", num_replies=512, num_fired=40, num_hinted=38, …)`.
    """

    kind: str
    # Of the policy, in Episodes that count.
    num_replies: int
    num_fired: int
    # With a hint that may be given, one a Reply.
    num_hinted: int
    # Left by the caps.
    num_targets: int
    # Of the Targets, let through by the gate.
    num_passed: int

    @property
    def rate(self) -> float:
        """How many are found in one Reply, on average."""
        return self.num_fired / self.num_replies if self.num_replies else 0.0


def count(
    episodes: Iterable[Episode],
    feedback: Mapping[str, Feedback],
    *,
    passed: Mapping[str, float] | None = None,
) -> tuple[Count, ...]:
    """Return a Count a kind that fired, in the order of the detectors.

    Args:
        episodes: that were looked at.
        feedback: by id of the Episode.
        passed: Targets that the gate let through, by kind, as the objective's metrics
            `passed/<kind>` say; none is counted without them.
    """
    seen = [it for it in episodes if it.is_valid]
    num_replies = sum(len(segment.replies) for it in seen for segment in it.segments)
    said = [feedback[it.id] for it in seen]
    fired = [finding.kind for it in said for finding in it.findings]
    hinted = [finding.kind for it in said for finding in it.hinted]
    targets = [target.kind for it in said for part in it.targets.values() for target in part]
    return tuple(
        Count(
            kind=kind,
            num_replies=num_replies,
            num_fired=fired.count(kind),
            num_hinted=hinted.count(kind),
            num_targets=targets.count(kind),
            num_passed=round((passed or {}).get(kind, 0)),
        )
        for kind in (*KINDS, "judged")
        if kind in fired
    )


def add(one: Sequence[Count], other: Sequence[Count]) -> tuple[Count, ...]:
    """Return the sums of two lists of Counts, as of two ranks or two steps."""
    by_kind = [{it.kind: it for it in counts} for counts in (one, other)]
    # A kind that did not fire was looked for in all Replies the same.
    num_replies = sum(max((it.num_replies for it in counts), default=0) for counts in (one, other))
    kinds = dict.fromkeys(it.kind for it in (*one, *other))
    return tuple(
        Count(
            kind=kind,
            num_replies=num_replies,
            num_fired=sum(it[kind].num_fired for it in by_kind if kind in it),
            num_hinted=sum(it[kind].num_hinted for it in by_kind if kind in it),
            num_targets=sum(it[kind].num_targets for it in by_kind if kind in it),
            num_passed=sum(it[kind].num_passed for it in by_kind if kind in it),
        )
        for kind in kinds
    )


def recurrence(now: Count, before: Sequence[Count]) -> float | None:
    """Return by what factor a kind is rarer or more frequent than at an earlier version.

    0.5 is half as often in a Reply; None where it did not fire before.
    """
    earlier = next((it for it in before if it.kind == now.kind), None)
    return now.rate / earlier.rate if earlier and earlier.rate else None


def counts_table(counts: Sequence[Count], *, before: Sequence[Count] = ()) -> Table:
    """Return a table for the terminal; recurrence is against the counts of a version before."""
    table = Table(title="feedback", title_justify="left")
    table.add_column("kind")
    for name in ("fired", "hinted", "targets", "gate passed", "recurrence"):
        table.add_column(name, justify="right")
    for it in counts:
        again = recurrence(it, before)
        share = f"{it.num_passed} ({it.num_passed / it.num_targets:.0%})" if it.num_targets else "-"
        table.add_row(
            it.kind,
            str(it.num_fired),
            str(it.num_hinted),
            str(it.num_targets),
            share,
            "-" if again is None else f"{again:.2f}x",
        )
    return table
