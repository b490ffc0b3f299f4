"""Make of Findings what is distilled: a hint in tokens, and the tokens that it is to change."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field, field_validator

from trainer.feedback.hints import hint, kinds_with_hints
from trainer.feedback.scan import put_in_order, scan, worst
from trainer.records import Episode, Finding, Ids, Target
from trainer.settings import Settings


class Hinter(Protocol):
    """Turns a hint into tokens; `trainer.chat.Chat` does."""

    def hint(self, text: str) -> Ids:
        """Return a whole message that can stand in front of a header."""


class TargetsConfig(Settings):
    """Which Findings become Targets."""

    # Of these kinds alone; all that have a hint when empty.
    kinds: tuple[str, ...] = ()
    # The whole message; or only the tokens at fault.
    span: Literal["message", "fault"] = "message"
    # Of one kind at one prompt, over all Episodes of its group: siblings err alike.
    max_per_kind: int = Field(default=4, ge=1)
    # Of all kinds at one prompt.
    max_per_prompt: int = Field(default=16, ge=0)

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(kinds) - kinds_with_hints():
            known = ", ".join(sorted(kinds_with_hints()))
            raise ValueError(f"no detector {', '.join(sorted(unknown))}, expected some of {known}")
        return kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What is said of one Episode."""

    findings: tuple[Finding, ...]
    # Those with a hint that may be given, one a Reply, before the caps.
    hinted: tuple[Finding, ...]
    # By Segment, in order of the Replies.
    targets: Mapping[int, tuple[Target, ...]]


def find_targets(
    episode: Episode, *, chat: Hinter, config: TargetsConfig
) -> dict[int, tuple[Target, ...]]:
    """Return the Targets of one Episode by Segment, the caps taken over it alone."""
    feedback = give_feedback([episode], chat=chat, config=config)
    return dict(feedback[episode.id].targets)


def give_feedback(
    episodes: Sequence[Episode],
    *,
    chat: Hinter,
    config: TargetsConfig,
    judged: Mapping[str, tuple[Finding, ...]] | None = None,
) -> dict[str, Feedback]:
    """Return the Feedback by id of the Episode; caps hold over each group.

    Where more is found than a cap allows, each Episode of the group has its share.

    Args:
        episodes: any number of groups, whole ones.
        chat: makes tokens of hints.
        config: which Findings, and how many.
        judged: what a judge found besides, by id of the Episode.
    """
    more = judged or {}
    findings = {it.id: put_in_order((*scan(it), *more.get(it.id, ()))) for it in episodes}
    hinted = {it.id: tuple(_hinted(it, findings[it.id], config)) for it in episodes}
    groups: dict[str, list[Episode]] = {}
    for episode in sorted(episodes, key=lambda it: it.number):
        groups.setdefault(episode.group, []).append(episode)
    kept = {place for group in groups.values() for place in _capped(group, hinted, config)}
    return {
        episode.id: Feedback(
            findings=findings[episode.id],
            hinted=tuple(finding for finding, _ in hinted[episode.id]),
            targets=_by_segment(
                episode,
                [it for it in hinted[episode.id] if (episode.id, _place(it[0])) in kept],
                chat=chat,
                config=config,
            ),
        )
        for episode in episodes
    }


Hinted = tuple[Finding, str]


def _hinted(
    episode: Episode, findings: tuple[Finding, ...], config: TargetsConfig
) -> Iterator[Hinted]:
    """Yield one Finding a Reply with its hint; an Episode that tampers is left to the monitor."""
    if not episode.is_valid or episode.verdict == "tampered":
        return
    wanted = config.kinds or kinds_with_hints()
    texts = [(it, hint(it, episode)) for it in findings if it.kind in wanted]
    given = {id(it): text for it, text in texts if text}
    for finding in worst(tuple(it for it, _ in texts if id(it) in given)):
        yield finding, given[id(finding)]


def _capped(
    group: Iterable[Episode], hinted: Mapping[str, tuple[Hinted, ...]], config: TargetsConfig
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the places that become Targets: the first of each Episode, then the second ones."""
    rounds: list[tuple[int, int, str, Finding]] = []
    for number, episode in enumerate(group):
        seen: Counter[str] = Counter()
        for finding, _ in hinted[episode.id]:
            rounds.append((seen[finding.kind], number, episode.id, finding))
            seen[finding.kind] += 1
    num_kept: Counter[str] = Counter()
    for _, _, episode_id, finding in sorted(rounds, key=lambda it: (it[0], -it[3].severity, it[1])):
        is_full = num_kept.total() >= config.max_per_prompt
        if not is_full and num_kept[finding.kind] < config.max_per_kind:
            num_kept[finding.kind] += 1
            yield episode_id, _place(finding)


def _by_segment(
    episode: Episode, hinted: Iterable[Hinted], *, chat: Hinter, config: TargetsConfig
) -> dict[int, tuple[Target, ...]]:
    found: dict[int, tuple[Target, ...]] = {}
    for finding, text in hinted:
        target = _target(episode, finding, text, chat=chat, config=config)
        found[finding.segment] = (*found.get(finding.segment, ()), target)
    return found


def _target(
    episode: Episode, finding: Finding, text: str, *, chat: Hinter, config: TargetsConfig
) -> Target:
    segment = episode.segments[finding.segment]
    reply = segment.replies[finding.reply]
    start, end = reply.start, reply.end
    if config.span == "fault":
        start, end = max(start, finding.start), min(end, finding.end)
    assert start < end, f"{finding.kind}: no token between {start} and {end}"
    assert segment.sampled[start:end].all(), f"{finding.kind}: {start}-{end} is not all sampled"
    return Target(
        reply=finding.reply,
        kind=finding.kind,
        hint_ids=chat.hint(text),
        hint=text,
        start=start,
        end=end,
    )


def _place(finding: Finding) -> tuple[int, int]:
    return finding.segment, finding.reply
