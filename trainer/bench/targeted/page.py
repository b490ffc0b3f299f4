"""Write the page about the experiment: what was run with which settings, and what came of it."""

from collections.abc import Iterable, Sequence

from pipeline.task.claims import Report
from trainer.bench.targeted.arms import ARMS
from trainer.bench.targeted.plan import Plan
from trainer.bench.targeted.sft import SftConfig
from trainer.bench.targeted.world import (
    MAX_GOALS,
    MIN_GOALS,
    NUM_SUFFIXES,
    NUM_TYPES,
    STEMS_PER_TYPE,
)

_NUM_NAMES = (STEMS_PER_TYPE - 1) * NUM_SUFFIXES
_INTRODUCTION = f"""\
# `regrow bench targeted`

Does a short hint at the faulty turn, which makes the policy its own teacher there, take away more
tool-call errors than the reward alone? A toy world that fits on one core; all arms of a world start
from one policy, see the same prompts, and play equally many episodes.

This page is what the bench writes to `targeted.md` in its folder.

## World

An episode lists {NUM_TYPES} tools, one of each type, drawn from {_NUM_NAMES} names a type, each
name two tokens (a stem and a suffix); it sets {MIN_GOALS} to {MAX_GOALS} goals one after another. A
call of a tool that is not listed answers "not found" and costs a turn; a wrong argument goes
unnoticed and spoils the end. The reward is 1 when every goal was met with the right argument, else
0: it says little about single errors, and nothing about those that leave enough turns.
"""

_CAVEATS = """\
## Read it with care

What the hints weigh, their divergence and that no prefix is distrusted was picked on an earlier
`far` with seed 1000; the learning rate and the number of turns in an earlier form of the worlds,
with seeds 1000 and 1001; negative and penalty keep the coefficients of a prototype. With these
settings seeds 0 to 5 of `habits` were run: hints took away 70 % of the errors in the median, 28 %
in the worst seed. Of six seeds an interval for the median ends at the outermost, so the number of
seeds was set anew, everything else left as it was, and the seeds of the table run once.

How far `far` is was looked for with seed 1000, by the share of wrong names in its demonstrations.
Where it is small, all that is pulled learns, and little apart; where it is large, nothing does
before the steps are over; the world was put where the arms differ:

| wrong names | error at the start | rl | negative | kl | both |
| --- | --- | --- | --- | --- | --- |
| 50% | 0.85 | 0.171 | 0.043 | 0.036 | 0.024 |
| 65% | 0.92 | 0.924 | 0.116 | 0.081 | 0.073 |
| 75% | 0.96 | 0.967 | 0.905 | 0.355 | 0.322 |
| 97%, seeds 0 to 2 | 0.98 | 0.980 | 0.991 | 0.935 | 0.924 |

All arms and seeds of a world start from one policy; ranges are over the seeds of the training
that follows. The errors are of one kind, and a wrong name is told from a right one by a rule. CPU
seconds of hints are the teacher's pass and the divergence; the backward pass through it is in
those of RL. Claims hold or not as they came out; every arm and seed that was run is in the table.
SmolLM2's part shows distributions, not an agent.
"""


def page(plan: Plan, report: Report) -> str:
    """Return the page, in Markdown."""
    return "\n".join([
        _INTRODUCTION,
        settings(plan),
        "## Claims\n",
        _table(
            ("", "claim", "figure", "bar"),
            [
                ("holds" if it.holds else "**does not hold**", it.claim, f"{it.figure:.3g}", it.bar)
                for it in report.claims
            ],
        ),
        "## Arms\n\nMedians of the seeds, and ranges from the least to the most of them.\n",
        _table(report.columns, report.rows),
        "![Errors while training](targeted.png)\n",
        _CAVEATS,
    ])


def settings(plan: Plan) -> str:
    """Return the part of the page that says what was set, before anything was run."""
    run = plan.run
    last = plan.first_seed + max(num for arms in plan.num_seeds.values() for num in arms.values())
    return "\n".join([
        "## Policies\n",
        *(f"- `{world}`: {_policy(config)}" for world, config in plan.worlds.items()),
        "\n## Training\n",
        (
            f"{run.steps} steps of {run.prompts} prompts x {run.group} episodes: "
            f"{run.steps * run.prompts * run.group} episodes an arm, with "
            f"{run.turns_per_goal:g} turns a goal; Adam, {run.warm_up_steps} steps up to "
            f"{run.lr:g}, then down to 0; "
            f"{run.final_episodes} fresh episodes at the end."
        ),
        f"Seeds {plan.first_seed} to {last - 1}; what was tuned was tuned on seeds from 1000 on.\n",
        *(f"- `{name}`: {_arm(name)}" for name in ARMS),
        "",
    ])


def _policy(config: SftConfig) -> str:
    noise = config.noise
    return (
        f"from scratch, on clean demonstrations until its error is below {config.clean_error:g}, "
        f"then on noisy ones in which {noise.wrong_name:.0%} of the names are wrong (of these "
        f"{noise.habit:.0%} are the one habitual name of the type, of a tool that is gone; the "
        f"others any with another stem), and {noise.hinted_wrong_name:.0%} after a hint; until its "
        f"error, measured, stays between {config.least_error:g} and {config.most_error:g}, and "
        f"below {config.most_hinted_error:g} after a hint, {config.checks_in_range} checks in a "
        f"row. "
        f"Every other turn of the noisy episodes is the policy's own. "
        f"{noise.other_list:.0%} of the demonstrated hints list other tools than the prompt does, "
        f"and are followed."
    )


def _arm(name: str) -> str:
    arm, parts = ARMS[name], []
    if arm.distill.weight:
        parts.append(
            f"{arm.distill.divergence} weight {arm.distill.weight:g}, teacher {arm.distill.teacher}"
            + (f" at rate {arm.distill.ema_rate:g}" if arm.distill.teacher == "ema" else "")
            + (", prefix trust" if arm.distill.trust else "")
        )
    if arm.distill.negative:
        parts.append(
            f"negative {arm.distill.negative:g} on the tokens of the name, down to a probability "
            f"of {arm.distill.negative_floor:g}"
        )
    return "; ".join([arm.about, *parts])


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)
