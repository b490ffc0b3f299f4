"""What the bench runs."""

from dataclasses import dataclass

from trainer.bench.targeted.arms import WORLDS, RunConfig, WorldName
from trainer.bench.targeted.real import RealConfig
from trainer.bench.targeted.sft import SftConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run."""

    worlds: dict[WorldName, SftConfig]
    first_seed: int
    # How many seeds each arm has, from the first on.
    num_seeds: dict[WorldName, dict[str, int]]
    run: RunConfig
    # None leaves the real model out.
    real: RealConfig | None


FULL = Plan(
    worlds=WORLDS,
    # Those before were run, and published, when six were all there were.
    first_seed=10,
    num_seeds={
        "habits": {
            "rl": 15,
            "penalty": 6,
            "negative": 6,
            "kl": 15,
            "kl_frozen": 6,
            "both": 6,
            "kl_live": 3,
            "kl_other": 3,
            "kl_all": 3,
        },
        "far": {"rl": 5, "negative": 5, "kl": 5, "both": 5},
    },
    run=RunConfig(),
    real=RealConfig(),
)

# The same code, on policies that have learnt next to nothing: its figures say nothing.
_UNTAUGHT = {"max_steps": 3, "check_every": 1, "num_checked": 8, "num_episodes": 4}
_ANY_GAP = {
    "clean_error": 1.1,
    "least_error": 0.0,
    "most_error": 1.0,
    "most_hinted_error": 1.0,
    "checks_in_range": 2,
}
QUICK = Plan(
    worlds={
        world: config.model_copy(update=_UNTAUGHT | _ANY_GAP) for world, config in WORLDS.items()
    },
    first_seed=0,
    num_seeds={world: dict.fromkeys(arms, 1) for world, arms in FULL.num_seeds.items()},
    run=RunConfig(steps=6, prompts=2, group=4, final_episodes=8),
    real=None,
)
