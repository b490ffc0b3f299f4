"""Try hints out before they are taught: does the policy, once told, no longer make the fault?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from pydantic import Field

from trainer.canary import Canary
from trainer.engine import Engine, Generated, Request
from trainer.feedback.scan import KINDS, recheck
from trainer.records import Episode, Finding, Ids, Reply, Target, ToolCall
from trainer.seeds import derive
from trainer.settings import Settings


class RepairConfig(Settings):
    """How often a hint is tried out."""

    # Times that the policy answers with the hint, and as often without it.
    tries: int = Field(default=4, ge=1)
    # An answer that is longer mends nothing.
    max_new_tokens: int = Field(default=256, ge=1)
    # That of the rollouts.
    temperature: float = Field(default=1.0, gt=0)


class Reader(Protocol):
    """Reads what the policy wrote; `trainer.chat.Chat` does."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """What ends a message."""

    def parse(self, reply: Ids) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the text and the calls of a message; tokens of calls count from its begin."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """A Target with the Finding that it is made of."""

    episode: Episode
    finding: Finding
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repair:
    """How a Trial went."""

    # Share of the answers without the fault: after the hint, and without it.
    hinted: float
    plain: float
    # The hinted context with an answer that mended it; None where none did.
    canary: Canary | None

    @property
    def passes(self) -> bool:
        """Tell whether the hint helps."""
        return self.hinted > self.plain


def try_hints(
    trials: Sequence[Trial],
    *,
    engine: Engine,
    reader: Reader,
    config: RepairConfig,
    max_context_tokens: int,
    seed: int,
) -> list[Repair | None]:
    """Return for each Trial how often its detector still fires, hinted and not.

    None where nobody can tell: no detector can look again at what a judge found, and an answer
    after the hint may not fit into `max_context_tokens`.

    Raises:
        EngineError: the engine failed.
    """
    room = max_context_tokens - config.max_new_tokens
    can_try = [it.finding.kind in KINDS and len(hinted_context(it)) <= room for it in trials]
    tried = [it for it, can in zip(trials, can_try, strict=True) if can]
    requests = [it for trial in tried for it in _requests(trial, reader, config=config, seed=seed)]
    answers = iter(engine.generate(requests))
    repairs: list[Repair | None] = []
    for trial, can in zip(trials, can_try, strict=True):
        if not can:
            repairs.append(None)
            continue
        hinted, plain = ([next(answers) for _ in range(config.tries)] for _ in range(2))
        repairs.append(_judge(trial, hinted, plain, reader=reader))
    return repairs


def _requests(
    trial: Trial, reader: Reader, *, config: RepairConfig, seed: int
) -> Iterator[Request]:
    """Yield the hinted requests of a Trial, then the plain ones."""
    for ids, kind in ((hinted_context(trial), "hinted"), (_plain_context(trial), "plain")):
        for number in range(config.tries):
            place = (trial.episode.id, trial.finding.segment, trial.target.reply)
            yield Request(
                ids=ids,
                max_new_tokens=config.max_new_tokens,
                temperature=config.temperature,
                stop_ids=reader.stop_ids,
                seed=derive(seed, "repair", *place, kind, number),
            )


def hinted_context(trial: Trial) -> Ids:
    """Return the history as it was, the hint, and the header of the Reply."""
    segment = trial.episode.segments[trial.finding.segment]
    reply = segment.replies[trial.target.reply]
    parts = (segment.ids[: reply.header], trial.target.hint_ids)
    return np.concatenate([*parts, segment.ids[reply.header : reply.start]])


def _plain_context(trial: Trial) -> Ids:
    segment = trial.episode.segments[trial.finding.segment]
    return segment.ids[: segment.replies[trial.target.reply].start]


def _judge(
    trial: Trial, hinted: Sequence[Generated], plain: Sequence[Generated], *, reader: Reader
) -> Repair:
    mended = [said for said in hinted if _is_mended(trial, said, reader=reader)]
    canary = None
    if mended:
        canary = Canary(context_ids=hinted_context(trial), good_ids=mended[0].ids)
    return Repair(
        hinted=len(mended) / len(hinted),
        plain=sum(_is_mended(trial, said, reader=reader) for said in plain) / len(plain),
        canary=canary,
    )


def _is_mended(trial: Trial, said: Generated, *, reader: Reader) -> bool:
    """Put an answer in place of the Reply, as if the hint had not been there, and look again."""
    old = trial.episode.segments[trial.finding.segment].replies[trial.target.reply]
    text, calls = reader.parse(said.ids)
    reply = Reply(
        header=old.header,
        start=old.start,
        end=old.start + len(said.ids),
        text=text,
        calls=tuple(
            replace(call, start=old.start + call.start, end=old.start + call.end) for call in calls
        ),
        results=(),
        stop=said.stop,
        version=said.version,
    )
    return recheck(reply, trial.finding, trial.episode)
