"""Give each Episode its advantage: how much better it did than its group."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

from pydantic import Field

from trainer.records import Episode
from trainer.settings import Settings


class CreditConfig(Settings):
    """What counts besides the reward.

    The effort of an Episode is the sum of its tokens, calls and replies, each with its weight; a
    concave penalty of it is taken from the reward (Composer 2, arXiv 2603.24477). With `penalty`
    at 0, the default, reward alone counts.
    """

    # What the penalty of the effort is multiplied with, in units of reward.
    penalty: float = Field(default=0.0, ge=0)
    # How fast effort counts at first.
    k: float = Field(default=1.0, gt=0)
    # How soon more effort stops to matter: 0 is linear, 1 logarithmic, above that bounded.
    q: float = Field(default=1.0, ge=0)
    # Effort of a token that the policy wrote.
    per_sampled_token: float = Field(default=0.001, ge=0)
    # Effort of any other token: prompts, results of calls.
    per_shown_token: float = Field(default=0.0, ge=0)
    # Effort of a call.
    per_call: float = Field(default=0.0, ge=0)
    # Effort of a Reply.
    per_reply: float = Field(default=0.0, ge=0)


PLAIN = CreditConfig()


def advantages(episodes: Sequence[Episode], *, config: CreditConfig = PLAIN) -> dict[str, float]:
    """Return the advantage of each valid Episode, by id.

    It is the reward less the mean of the valid Episodes of the same group, as in Dr. GRPO (arXiv
    2503.20783): no standard deviation, no length. Means are exact and rounded once, so neither
    order nor who computes it matters, and a group of equal rewards gives exactly 0, as does an
    Episode that is alone. Who is not valid is in no mean, and not in the answer.

    Raises:
        ValueError: a reward is not finite, or two Episodes have one id.
    """
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for episode in episodes:
        if episode.reward is None:
            continue
        if episode.id in groups[episode.group]:
            raise ValueError(f"episode {episode.id}: is there twice, expected once")
        groups[episode.group][episode.id] = score(episode, episode.reward, config=config)
    return {
        episode_id: value
        for scores in groups.values()
        for episode_id, value in _above_mean(scores).items()
    }


def _above_mean(scores: Mapping[str, float]) -> dict[str, float]:
    baseline = mean(scores.values())
    return {episode_id: value - baseline for episode_id, value in scores.items()}


def score(episode: Episode, reward: float, *, config: CreditConfig) -> float:
    """Return the reward less the penalty of the effort.

    Raises:
        ValueError: it is not finite.
    """
    value = reward
    if config.penalty:
        value -= config.penalty * effort_penalty(effort(episode, config=config), config.k, config.q)
    if not math.isfinite(value):
        raise ValueError(f"episode {episode.id}: reward {value}, expected a finite number")
    return value


def effort(episode: Episode, *, config: CreditConfig) -> float:
    """Return the weighted sum of what an Episode took."""
    replies = [reply for segment in episode.segments for reply in segment.replies]
    num_tokens = sum(len(segment.ids) for segment in episode.segments)
    num_sampled = sum(int(segment.sampled.sum()) for segment in episode.segments)
    return (
        config.per_sampled_token * num_sampled
        + config.per_shown_token * (num_tokens - num_sampled)
        + config.per_call * sum(len(reply.calls) for reply in replies)
        + config.per_reply * len(replies)
    )


def effort_penalty(x: float, k: float, q: float) -> float:
    """Return `((1 + k x)^(1 - q) - 1) / (k (1 - q))`, at `q = 1` its limit `log(1 + k x) / k`.

    Composer 2, arXiv 2603.24477. It grows with the effort `x`, ever slower for `q > 0`.

    Example:
        >>> effort_penalty(3.0, 1.0, 0.5)
        2.0
    """
    log_grown = math.log1p(k * x)
    exponent = 1 - q
    if exponent == 0:
        return log_grown / k
    return math.expm1(exponent * log_grown) / (k * exponent)
