"""Count what each detector found, and how often a hint for it could be given."""

from collections import Counter
from collections.abc import Iterable, Mapping

from trainer.feedback.targets import Feedback
from trainer.records import Episode


def count_feedback(
    episodes: Iterable[Episode], feedback: Mapping[str, Feedback]
) -> dict[str, float]:
    """Return sums over the Episodes that count; those of ranks add up.

    `replies` of the policy; `fired` Findings in them and `hinted`, one a Reply with a hint that
    may be given; each also by kind, as in `fired/unknown_tool`. What became of the hints, Targets
    and those that the gate passed, the objective counts.
    """
    counted: Counter[str] = Counter()
    for episode in episodes:
        if episode.is_valid:
            said = feedback[episode.id]
            counted["replies"] += sum(len(it.replies) for it in episode.segments)
            for name, findings in (("fired", said.findings), ("hinted", said.hinted)):
                counted[name] += len(findings)
                counted.update(f"{name}/{it.kind}" for it in findings)
    return dict(counted)


def rates(counted: Mapping[str, float]) -> dict[str, float]:
    """Return how often each kind fires in a Reply, as `rate/unknown_tool`, and all together.

    Held against an earlier step's, of an earlier version of the weights, it tells whether a fault
    comes back.
    """
    replies = counted.get("replies")
    if not replies:
        return {}
    by_kind = {name: it for name, it in counted.items() if name.startswith("fired/")}
    return {
        "findings_per_reply": counted["fired"] / replies,
        **{f"rate/{name.removeprefix('fired/')}": it / replies for name, it in by_kind.items()},
    }
