"""Choose which prompts to practise next: those that the policy solves now and then.

A group of tries teaches by what differs within it. With a solve rate p and G tries the chance that
some but not all succeed is 1 - p^G - (1 - p)^G, which is most at one half. The rate is known from
few tries, of a policy that has changed since. So each prompt has a difficulty and the policy one
skill, logit p = skill - difficulty (Rasch), both known as normal distributions that each group of
tries narrows (as ratings of players are, Glicko) and each step widens: what is learnt of one prompt
tells of those that were tried long ago. Difficulties are drawn from what is known (Thompson
sampling, arXiv 1707.02038), so that what is not known is looked at.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from trainer.records import Episode
from trainer.seeds import derive
from trainer.settings import Settings
from trainer.tasks import prompt_at

# A pick whose expected rate lies between these teaches well.
GOOD_RATES = (0.3, 0.7)
# Halvings of the interval in which a logit is looked for.
_HALVINGS = 60


class CurriculumConfig(Settings):
    """How prompts are chosen."""

    # All in turn, in an order drawn for each round; or those that teach most.
    kind: Literal["uniform", "learnability"] = "uniform"
    # Standard deviation of difficulties before any try, in logits: a wide guess.
    spread: PositiveFloat = 3.0
    # How far the skill may move in a step, and what is known of a prompt that is not tried.
    skill_drift: PositiveFloat = 0.05
    prompt_drift: float = Field(default=0.02, ge=0)
    # Groups in a row that all tries solved until a prompt is retired; none solved: parked.
    retire_after: PositiveInt = 2
    park_after: PositiveInt = 3
    # Steps after which one that is set aside may be looked at again.
    revisit: PositiveInt = 100
    # How far draws are from the mean: 1 draws from all that may be, 0 believes the mean.
    curiosity: float = Field(default=0.5, ge=0)
    # Share of the picks of a step that are drawn evenly from all that are not set aside.
    explore: float = Field(default=0.05, ge=0, le=1)
    # Each pick of a repository makes the next of it worth this much.
    balance: float = Field(default=0.9, gt=0, le=1)


@dataclass(slots=True, kw_only=True)
class Known:
    """What tries at one prompt have told."""

    # Difficulty in logits, and its variance at the last step that it was tried at.
    difficulty: float
    variance: float
    step: int
    # Groups in a row of which all tries, or none, were solved.
    all_solved: int
    none_solved: int


@dataclass(slots=True, kw_only=True)
class Learned:
    """All that a curriculum has learned; a checkpoint holds it."""

    # Of the policy, in logits: 0 is the skill at the start.
    skill: float = 0.0
    variance: float = 0.0
    # By prompt; those that were tried.
    known: dict[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tries at a prompt of one step came to.

    Example: `Outcome(solved=3.0, tried=8)`.
    """

    # Their rewards, each between 0 and 1, added up.
    solved: float
    tried: int


@dataclass(slots=True, kw_only=True)
class Curriculum:
    """Owns what is known of each prompt; picks depend on that, the seed and the step alone."""

    prompts: tuple[str, ...]
    config: CurriculumConfig
    # Tries in a group.
    group: int
    seed: int
    learned: Learned = field(default_factory=Learned)

    def pick(self, step: int, count: int) -> list[str]:
        """Return the prompts of a step; one comes twice only where there are too few."""
        if self.config.kind == "uniform":
            first = step * count
            return [prompt_at(first + it, self.prompts, seed=self.seed) for it in range(count)]
        open_to = [it for it in self.prompts if not self.is_set_aside(it, step)]
        rounds, rest = divmod(count, len(self.prompts))
        if len(open_to) < rest:
            # Rather one that is set aside than none: the one that has rested longest.
            resting = sorted(
                set(self.prompts).difference(open_to),
                key=lambda it: (self.learned.known[it].step, it),
            )
            open_to += resting[: rest - len(open_to)]
        return [*list(self.prompts) * rounds, *self._best(open_to, step=step, count=rest)]

    def _best(self, open_to: Sequence[str], *, step: int, count: int) -> list[str]:
        draws = {it: Random(derive(self.seed, "curriculum", step, it)) for it in open_to}  # noqa: S311
        worth = {it: self._worth(it, step=step, draw=draw) for it, draw in draws.items()}
        order = sorted(open_to, key=lambda it: (draws[it].random(), it))
        wanted = self.config.explore * count
        lot = Random(derive(self.seed, "explore", step)).random()  # noqa: S311  no secret
        picked = order[: int(wanted) + (lot < wanted % 1)]
        repos = Counter(map(repo_of, picked))
        left = set(open_to).difference(picked)
        while len(picked) < count:
            best = max(
                left, key=lambda it: (worth[it] * self.config.balance ** repos[repo_of(it)], it)
            )
            left.remove(best)
            picked.append(best)
            repos[repo_of(best)] += 1
        return picked

    def _worth(self, prompt: str, *, step: int, draw: Random) -> float:
        """Return how likely a group at a rate that may be the prompt's has both outcomes."""
        difficulty, variance = self._belief(prompt, step)
        spread = self.config.curiosity * math.sqrt(variance)
        rate = _sigmoid(self.learned.skill - draw.gauss(difficulty, spread))
        return 1 - rate**self.group - (1 - rate) ** self.group

    def _belief(self, prompt: str, step: int) -> tuple[float, float]:
        """Return mean and variance of a prompt's difficulty."""
        known = self.learned.known.get(prompt)
        if known is None:
            return 0.0, self.config.spread**2
        drifted = known.variance + (step - known.step) * self.config.prompt_drift**2
        return known.difficulty, min(drifted, self.config.spread**2)

    def rate(self, prompt: str, step: int) -> float:
        """Return the solve rate that is expected of a prompt."""
        difficulty, variance = self._belief(prompt, step)
        # The mean of a sigmoid over a normal distribution (MacKay 1992).
        unsure = math.sqrt(1 + math.pi * (variance + self.learned.variance) / 8)
        return _sigmoid((self.learned.skill - difficulty) / unsure)

    def is_set_aside(self, prompt: str, step: int) -> bool:
        """Tell whether it is retired or parked, and has not rested long enough."""
        known, config = self.learned.known.get(prompt), self.config
        if known is None:
            return False
        is_told = known.all_solved >= config.retire_after or known.none_solved >= config.park_after
        return is_told and step - known.step < config.revisit

    def note(self, step: int, outcomes: Mapping[str, Outcome]) -> None:
        """Take in what the tries of a step came to, on all ranks; they must be noted in order."""
        if self.config.kind == "uniform":
            return
        learned = self.learned
        learned.variance += self.config.skill_drift**2
        for prompt, it in sorted(outcomes.items()):
            if it.tried:
                self._learn(prompt, it, step=step)

    def _learn(self, prompt: str, it: Outcome, *, step: int) -> None:
        """Move skill and difficulty towards an outcome, each by how little is known of it."""
        learned = self.learned
        difficulty, variance = self._belief(prompt, step)
        total = learned.variance + variance
        logit = learned.skill - difficulty
        found = _likeliest(it, mean=logit, variance=total)
        moved = (found - logit) / total
        rate = _sigmoid(found)
        # By Laplace: what the tries have taken from the variance of both together.
        told = 1 / total - 1 / (total + total**2 * it.tried * rate * (1 - rate))
        learned.skill += moved * learned.variance
        learned.variance -= told * learned.variance**2
        old = learned.known.get(prompt)
        learned.known[prompt] = Known(
            difficulty=difficulty - moved * variance,
            variance=variance - told * variance**2,
            step=step,
            all_solved=(old.all_solved if old else 0) + 1 if it.solved >= it.tried else 0,
            none_solved=(old.none_solved if old else 0) + 1 if it.solved <= 0 else 0,
        )

    def measure(self, step: int, picked: Sequence[str]) -> dict[str, float]:
        """Return numbers about the picks of a step, before it; none where all come in turn."""
        if self.config.kind == "uniform":
            return {}
        rates = [self.rate(it, step) for it in picked]
        low, high = GOOD_RATES
        known = [it for it in self.learned.known.values() if step - it.step < self.config.revisit]
        return {
            "curriculum/rate": sum(rates) / max(len(rates), 1),
            "curriculum/good": sum(low <= it <= high for it in rates) / max(len(rates), 1),
            "curriculum/retired": sum(it.all_solved >= self.config.retire_after for it in known),
            "curriculum/parked": sum(it.none_solved >= self.config.park_after for it in known),
            "curriculum/tried": len(self.learned.known),
            "curriculum/skill": self.learned.skill,
        }


def repo_of(prompt: str) -> str:
    """Return the repository that a prompt is of: the id of a Task begins with its name."""
    return prompt.rpartition("-")[0] or prompt


def outcomes_of(episodes: Iterable[Episode]) -> dict[str, Outcome]:
    """Return what the tries at each prompt came to; those without a reward count for nothing."""
    found: dict[str, Outcome] = {}
    for it in episodes:
        if it.reward is not None:
            old = found.get(it.prompt, Outcome(solved=0.0, tried=0))
            gained = min(1.0, max(0.0, it.reward))
            found[it.prompt] = Outcome(solved=old.solved + gained, tried=old.tried + 1)
    return found


def _likeliest(it: Outcome, *, mean: float, variance: float) -> float:
    """Return the likeliest logit of a rate that was normal before so many tries were solved.

    Example:
        >>> round(_likeliest(Outcome(solved=8, tried=8), mean=-5.0, variance=4.0), 2)
        1.39
    """
    # The slope of the posterior falls, and no try pulls by more than 1.
    low, high = mean - variance * it.tried, mean + variance * it.tried
    for _ in range(_HALVINGS):
        logit = (low + high) / 2
        slope = it.solved - it.tried * _sigmoid(logit) - (logit - mean) / variance
        low, high = (logit, high) if slope > 0 else (low, logit)
    return (low + high) / 2


def _sigmoid(logit: float) -> float:
    return 0.5 * (1 + math.tanh(logit / 2))
