"""Run the Episodes of a step and say what could have been better: all that one engine is asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainer.canary import Canary
from trainer.chat import Chat
from trainer.engine import Engine
from trainer.env import World
from trainer.feedback.judge import JudgeConfig
from trainer.feedback.panel import Judged, judge_all
from trainer.feedback.targets import Feedback, TargetsConfig, give_feedback
from trainer.records import Episode, Finding, Sample, Target
from trainer.repair import RepairConfig, Trial, try_hints
from trainer.rollout import run_episodes
from trainer.settings import Settings
from trainer.tries import RolloutConfig, Try


class RollConfig(Settings):
    """What belongs to the Episodes of a step; the parts of `TrainConfig` of these names."""

    seed: int
    rollout: RolloutConfig
    feedback: TargetsConfig
    repair: RepairConfig | None
    judge: JudgeConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    """The Episodes of a step, with what is said of each."""

    # In order of their ids' tries.
    episodes: tuple[Episode, ...]
    # By id of the Episode; of the Targets those that the gate let through.
    feedback: Mapping[str, Feedback]
    # Hinted contexts in which the policy did well.
    canaries: tuple[Canary, ...]
    # Why the judge said nothing, by id of the Episode; empty where none is asked.
    unjudged: Mapping[str, str] = field(default_factory=dict)


def plan(position: int, prompts: Sequence[str], *, group: int) -> list[Try]:
    """Return the tries at the prompts from a position of the stream on."""
    return [
        Try(group=f"{position + offset:08}-{prompt}", number=number, prompt=prompt)
        for offset, prompt in enumerate(prompts)
        for number in range(group)
    ]


def roll(
    tries: Sequence[Try],
    *,
    world: World,
    engine: Engine,
    chat: Chat,
    config: RollConfig,
    watch: Callable[[Episode], None] = lambda _: None,
) -> Rolled:
    """Run some tries to their end, find what could have been better, and try the hints.

    `watch` is told of each Episode when it ends. A judge that fails costs its own findings alone.

    Raises:
        EngineError: the engine failed.
    """
    order = {f"{it.group}.{it.number}": number for number, it in enumerate(tries)}
    ended = run_episodes(
        tries, world=world, engine=engine, chat=chat, config=config.rollout, seed=config.seed
    )
    found = []
    for episode in ended:
        watch(episode)
        found.append(episode)
    episodes = tuple(sorted(found, key=lambda it: order[it.id]))
    judged = Judged(findings={}, unjudged={})
    if config.judge is not None:
        judged = judge_all(episodes, config=config.judge)
    feedback = give_feedback(episodes, chat=chat, config=config.feedback, judged=judged.findings)
    canaries: tuple[Canary, ...] = ()
    if config.repair is not None:
        feedback, canaries = _gated(episodes, feedback, engine=engine, chat=chat, config=config)
    return Rolled(episodes=episodes, feedback=feedback, canaries=canaries, unjudged=judged.unjudged)


def make_samples(rolled: Rolled, advantages: Mapping[str, float]) -> list[Sample]:
    """Return the Segments of all Episodes that count, each with its Targets."""
    return [
        Sample(
            id=f"{episode.id}/{number}",
            segment=segment,
            advantage=advantages[episode.id],
            targets=rolled.feedback[episode.id].targets.get(number, ()),
        )
        for episode in rolled.episodes
        if episode.id in advantages
        for number, segment in enumerate(episode.segments)
    ]


def _gated(
    episodes: Sequence[Episode],
    feedback: Mapping[str, Feedback],
    *,
    engine: Engine,
    chat: Chat,
    config: RollConfig,
) -> tuple[dict[str, Feedback], tuple[Canary, ...]]:
    """Leave the Targets whose hints help, and those at which no detector can look again."""
    assert config.repair is not None
    trials = [it for episode in episodes for it in _trials(episode, feedback[episode.id])]
    repairs = try_hints(
        trials,
        engine=engine,
        reader=chat,
        config=config.repair,
        max_context_tokens=config.rollout.max_context_tokens,
        seed=config.seed,
    )
    useless = {
        id(trial.target)
        for trial, repair in zip(trials, repairs, strict=True)
        if repair is not None and not repair.passes
    }
    kept = {
        episode_id: replace(
            it,
            targets={
                number: tuple(target for target in targets if id(target) not in useless)
                for number, targets in it.targets.items()
            },
        )
        for episode_id, it in feedback.items()
    }
    return kept, tuple(it.canary for it in repairs if it is not None and it.canary is not None)


def _trials(episode: Episode, feedback: Feedback) -> list[Trial]:
    """Return the Targets of an Episode with the Findings that they are made of."""
    found: dict[tuple[int, int, str], Finding] = {
        (it.segment, it.reply, it.kind): it for it in feedback.hinted
    }
    pairs: list[tuple[Target, Finding]] = [
        (target, found[number, target.reply, target.kind])
        for number, targets in feedback.targets.items()
        for target in targets
    ]
    return [Trial(episode=episode, finding=finding, target=target) for target, finding in pairs]
