"""Train: roll out, look at what went wrong, learn, go on. The trainer on one page."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainer.ahead import Ahead
from trainer.chat import Chat
from trainer.config import TrainConfig
from trainer.credit import advantages
from trainer.curriculum import Curriculum, Outcome, outcomes_of
from trainer.engine import Engine
from trainer.env import World
from trainer.learner import Learner, Learnt
from trainer.ranks import Ranks
from trainer.records import Episode
from trainer.resume import Progress, restore, save
from trainer.roll import RollConfig, Rolled, make_samples, plan, roll


class StoppedError(RuntimeError):
    """The run cannot go on; its last checkpoint is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a run works with."""

    world: World
    # Of all that may be tried.
    curriculum: Curriculum
    tokenizer: object
    chat: Chat
    engine: Engine
    learner: Learner
    ranks: Ranks
    # Told of each Episode of a step when it ends, from any thread.
    watch: Callable[[int, Episode], None] = lambda _step, _episode: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step of a run came to, on this rank where not said otherwise."""

    number: int
    rolled: Rolled
    # By id of the Episode.
    advantages: dict[str, float]
    # Over all ranks.
    learnt: Learnt
    # Of the teacher on its canaries; None without any.
    canary_error: float | None
    # About its prompts, as `Curriculum.measure` names them.
    picked: dict[str, float]
    # Version of the weights that sampled.
    version: int
    # Wall seconds that rollouts were waited for, and that learning took.
    rollout_s: float
    learn_s: float


def train(
    config: TrainConfig, parts: Parts, *, folder: Path, report: Callable[[Step], None]
) -> None:
    """Train from the last checkpoint in a folder, or from the start, to the last step.

    Raises:
        StoppedError: the loss was no number too often, or engine and trainer drifted apart.
        EngineError: the engine failed after all tries.
        TeacherCollapsedError: the teacher's advice is none any more.
        CheckpointError: the last checkpoint is not as it was written.
        RankError: another rank did not come.
    """
    learner, engine = parts.learner, parts.engine
    progress = restore(folder, learner) or Progress()
    parts.curriculum.learned = progress.learned
    roll_step = partial(_roll, config=config, parts=parts)
    ahead = Ahead(roll_step, staleness=config.staleness, last=config.steps)
    try:
        behind = progress.behind or learner.weights()
        engine.sync(behind, version=max(0, progress.step - config.staleness))
        while progress.step < config.steps:
            step = _step(progress, ahead, config=config, parts=parts)
            report(step)
            _check(config, progress, step.learnt)
            is_due = progress.step % config.checkpoint.every == 0 or progress.step == config.steps
            if is_due:
                save(
                    folder,
                    progress,
                    learner,
                    tokenizer=parts.tokenizer,
                    config=config.checkpoint,
                    ranks=parts.ranks,
                )
    finally:
        ahead.close()
        engine.close()


def _step(progress: Progress, ahead: Ahead, *, config: TrainConfig, parts: Parts) -> Step:
    """Take one step; Episodes of the next one may run meanwhile."""
    step, learner, engine = progress.step, parts.learner, parts.engine
    began_s = time.monotonic()
    if not config.staleness:
        engine.sync(learner.weights(), version=step)
    version = engine.version
    curriculum = parts.curriculum
    picked = curriculum.measure(step, curriculum.pick(step, config.prompts))
    rolled = ahead.take(step)
    rolled_s = time.monotonic()
    # Before the next step's are picked, which may be soon.
    curriculum.note(step, _outcomes(rolled, parts.ranks, step=step))
    if config.staleness:
        behind = progress.fall_behind(learner)
        # Ranks may share a server: none may still be sampling from it.
        parts.ranks.meet(f"step {step}, rollouts")
        engine.sync(behind, version=step)
        ahead.go_on(step)
    credit = advantages(rolled.episodes, config=config.credit)
    learnt = learner.learn(make_samples(rolled, credit), step=step)
    progress.note(learnt, learner.spread.first(rolled.canaries))
    canary_error = None
    if progress.canaries and learner.looks_after_teacher:
        temperature = config.objective.temperature
        canary_error = learner.teacher.check(progress.canaries, temperature=temperature)
    return Step(
        number=step,
        rolled=rolled,
        advantages=credit,
        learnt=learnt,
        canary_error=canary_error,
        picked=picked,
        version=version,
        rollout_s=rolled_s - began_s,
        learn_s=time.monotonic() - rolled_s,
    )


def _roll(step: int, *, config: TrainConfig, parts: Parts) -> Rolled:
    """Run this rank's share of the Episodes of a step."""
    first = step * config.prompts
    ids = parts.curriculum.pick(step, config.prompts)
    tries = plan(first, ids, group=config.group)
    own = [it for number, it in enumerate(tries) if parts.ranks.has_share(number // config.group)]
    settings = RollConfig(
        seed=config.seed,
        rollout=config.rollout,
        feedback=config.feedback,
        repair=config.repair,
        judge=config.judge,
    )
    return roll(
        own,
        world=parts.world,
        engine=parts.engine,
        chat=parts.chat,
        config=settings,
        watch=partial(parts.watch, step),
    )


def _outcomes(rolled: Rolled, ranks: Ranks, *, step: int) -> dict[str, Outcome]:
    """Return what the tries at each prompt came to on all ranks."""
    own = outcomes_of(rolled.episodes)
    numbers = {f"solved {prompt}": it.solved for prompt, it in own.items()}
    numbers |= {f"tried {prompt}": float(it.tried) for prompt, it in own.items()}
    total = ranks.sum_numbers(numbers, f"step {step}, outcomes")
    return {
        name.removeprefix("tried "): Outcome(
            solved=total[name.replace("tried ", "solved ", 1)], tried=round(it)
        )
        for name, it in total.items()
        if name.startswith("tried ")
    }


def _check(config: TrainConfig, progress: Progress, learnt: Learnt) -> None:
    if progress.num_bad >= config.max_bad_steps:
        raise StoppedError(
            f"step {progress.step - 1}: the loss is no number, {progress.num_bad} steps in a row;"
            f" expected fewer than max_bad_steps {config.max_bad_steps}"
        )
    drift = learnt.sums.get("mismatch_kl", 0.0) / max(learnt.denominators.tokens, 1)
    if config.max_mismatch_kl is not None and drift > config.max_mismatch_kl:
        raise StoppedError(
            f"step {progress.step - 1}: KL per token between engine and trainer is {drift:.4g},"
            f" expected at most max_mismatch_kl {config.max_mismatch_kl:g}"
        )
