"""The arms of the experiment and their settings, fixed before the seeds that are reported were run.

What was tuned was tuned on the seeds from 1000 on, which no table shows.
"""

from typing import Literal

from trainer.bench.targeted.demonstrations import Noise
from trainer.bench.targeted.sft import SftConfig
from trainer.distill import DistillConfig
from trainer.settings import Settings

WorldName = Literal["habits", "far"]

# Two policies with bad habits. `habits`: a good part of the calls goes to one habitual or to any
# name, the rest to the listed one. `far`: nearly all calls go to any of 48 names, and the listed
# one is hardly likelier than each of these, so that hardly any reward is ever seen.
WORLDS: dict[WorldName, SftConfig] = {
    "habits": SftConfig(),
    "far": SftConfig(
        noise=Noise(wrong_name=0.75, habit=0.0),
        least_error=0.85,
        most_error=1.0,
        most_hinted_error=0.15,
    ),
}


class Arm(Settings):
    """What is trained besides the reward."""

    # In one line, for the table.
    about: str
    # Taken from the reward for each error.
    penalty: float = 0.0
    # Turns that are pulled at: those that an error answered, or all.
    turns: Literal["errors", "all"] = "errors"
    # Tools that the hint lists: those of the episode, or those of another.
    lists: Literal["own", "other"] = "own"
    distill: DistillConfig = DistillConfig(weight=0.0)


_KL = DistillConfig(weight=1.0, divergence="jsd", teacher="ema", ema_rate=0.02)
_NEGATIVE = DistillConfig(weight=0.0, negative=0.5)

ARMS: dict[str, Arm] = {
    "rl": Arm(about="reward alone"),
    "penalty": Arm(about="0.1 less reward for each error", penalty=0.1),
    "negative": Arm(about="flagged names made less likely", distill=_NEGATIVE),
    "kl": Arm(about="hint, teacher a moving average", distill=_KL),
    "kl_frozen": Arm(
        about="hint, teacher frozen", distill=_KL.model_copy(update={"teacher": "frozen"})
    ),
    "both": Arm(about="kl and negative", distill=_KL.model_copy(update={"negative": 0.5})),
    "kl_live": Arm(
        about="hint, teacher is the policy", distill=_KL.model_copy(update={"teacher": "live"})
    ),
    "kl_other": Arm(about="hint lists another episode's tools", lists="other", distill=_KL),
    "kl_all": Arm(about="hint at every turn", turns="all", distill=_KL),
}


class RunConfig(Settings):
    """How much an arm is trained and measured; the same for all."""

    steps: int = 40
    # Prompts of a step, and episodes of each.
    prompts: int = 8
    group: int = 8
    # Its most: it rises for some steps, then falls to 0 in a line.
    lr: float = 1.5e-3
    warm_up_steps: int = 5
    # Of Adam.
    betas: tuple[float, float] = (0.9, 0.99)
    # Calls that an episode may make: so many that a reward without errors in it is blind to most.
    turns_per_goal: float = 2.5
    final_episodes: int = 512
