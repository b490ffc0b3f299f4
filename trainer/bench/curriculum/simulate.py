"""Simulate a policy whose skill grows by what it practises.

What is assumed: a prompt of difficulty d is solved with probability s^a / (s^a + d^a) by a policy
of skill s, each try by itself; difficulties are spread evenly on a logarithmic scale over several
repositories; a step multiplies the skill by 1 + `pace` times the mean of 4 p (1 - p) over its
prompts: nothing is learnt where all tries end alike, most at one half. Real policies forget, learn
some prompts by heart, and are hardly ever this smooth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from trainer.curriculum import Curriculum, CurriculumConfig, Outcome
from trainer.seeds import derive
from trainer.settings import Settings


class SimulationConfig(Settings):
    """What is simulated."""

    prompts: int = 400
    repos: int = 10
    # The easiest and the hardest, in units of the skill at first.
    easiest: float = 1 / 16
    hardest: float = 64.0
    # How sharply the solve rate falls with difficulty: `a`.
    sharpness: float = 2.0
    # Of a step whose prompts are all at one half.
    pace: float = 0.02
    per_step: int = 8
    group: int = 8
    # Skill at the end, in units of that at first: it doubles three times.
    goal: float = 8.0
    max_steps: int = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A step of a simulation."""

    # Before it.
    skill: float
    # True solve rates of its prompts, then.
    rates: tuple[float, ...]


def simulate(
    curriculum: CurriculumConfig, config: SimulationConfig, *, seed: int
) -> Iterator[Moment]:
    """Yield the steps until the goal is reached, or until `max_steps`."""
    draw = Random(derive(seed, "difficulties"))  # noqa: S311  no secret
    span = config.hardest / config.easiest
    difficulties = {
        f"repo{number % config.repos}-{number:012x}": config.easiest * span ** draw.random()
        for number in range(config.prompts)
    }
    chooser = Curriculum(
        prompts=tuple(difficulties), config=curriculum, group=config.group, seed=seed
    )
    skill = 1.0
    for step in range(config.max_steps):
        picked = chooser.pick(step, config.per_step)
        rates = tuple(solve_rate(skill, difficulties[it], config) for it in picked)
        yield Moment(skill=skill, rates=rates)
        tries = Random(derive(seed, "tries", step))  # noqa: S311  no secret
        chooser.note(
            step,
            {
                prompt: Outcome(
                    solved=sum(tries.random() < rate for _ in range(config.group)),
                    tried=config.group,
                )
                for prompt, rate in zip(picked, rates, strict=True)
            },
        )
        skill *= 1 + config.pace * sum(4 * it * (1 - it) for it in rates) / len(rates)
        if skill >= config.goal:
            return


def solve_rate(skill: float, difficulty: float, config: SimulationConfig) -> float:
    """Return how likely one try solves a prompt."""
    strength = (skill / difficulty) ** config.sharpness
    return strength / (1 + strength)
