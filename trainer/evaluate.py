"""Measure a policy without training it: every Task tried some times, kept Task by Task."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from pipeline.task.files import write_whole
from trainer.chat import Chat
from trainer.config import TrainConfig
from trainer.desks import open_world
from trainer.engine import Engine
from trainer.engines import give_weights, open_engine
from trainer.env import World
from trainer.episode_shards import Entry, read_entries, write_entries
from trainer.model import load_model, load_tokenizer
from trainer.resume import MODEL
from trainer.roll import RollConfig, plan, roll
from trainer.tries import Try

# Of a normal distribution: 95 of 100 cases.
Z = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What the tries at one Task, or at all, came to.

    Example: `Score(name="all", solved=3, valid=7, lost=1, calls=40, fired={"unknown_tool": 2})`.
    """

    name: str
    # Of the valid ones.
    solved: int
    valid: int
    # Tries that came to no verdict: no fault of the policy's.
    lost: int
    # Of tools.
    calls: int
    # Findings by kind.
    fired: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What Tasks are tried with."""

    world: World
    prompts: tuple[str, ...]
    chat: Chat
    engine: Engine


def with_model_of(config: TrainConfig, checkpoint: Path) -> TrainConfig:
    """Return a configuration with the model of a checkpoint of `regrow train`.

    Raises:
        ValueError: there is none in the folder.
    """
    folder = checkpoint / MODEL
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder, expected that of a checkpoint")
    model = config.model.model_copy(update={"source": str(folder), "tiny": None})
    return config.model_copy(update={"model": model})


@contextmanager
def open_scene(config: TrainConfig) -> Iterator[Scene]:
    """Give what Tasks are tried with, for the time of a block.

    Raises:
        ValueError: shards, model or tokenizer cannot be used.
        EngineError: the engine failed.
    """
    chat = Chat(load_tokenizer(config.model), config.chat)
    with open_world(config.tasks, config=config.task, seed=config.seed) as (world, prompts):
        engine = open_engine(config)
        try:
            if config.engine.kind == "http":
                give_weights(engine, load_model(config.model, seed=config.seed, copies=1))
            yield Scene(world=world, prompts=prompts, chat=chat, engine=engine)
        finally:
            engine.close()


def evaluate(
    config: TrainConfig,
    scene: Scene,
    *,
    folder: Path,
    attempts: int,
    report: Callable[[Score], None],
) -> list[Score]:
    """Try every Task; a Task whose file is in the folder is read, not tried again.

    Raises:
        ValueError: a file in the folder is not of these tries.
        EngineError: the engine failed after all tries.
    """
    settings = RollConfig(
        seed=config.seed, rollout=config.rollout, feedback=config.feedback, repair=None
    )
    _claim(folder, config)
    scores = []
    for position, prompt in enumerate(sorted(scene.prompts)):
        path = folder / f"{position:08}.parquet"
        tries = plan(position, [prompt], group=attempts)
        entries = list(read_entries(path)) if path.exists() else []
        # What a machine's failure has cost is tried again.
        if not entries or any(it.episode.ending == "infra" for it in entries):
            write_entries(path, _try(tries, scene, settings))
            entries = list(read_entries(path))
        if [(it.episode.group, it.episode.number) for it in entries] != [
            (it.group, it.number) for it in tries
        ]:
            raise ValueError(f"{path}: is not {attempts} tries at {prompt}; expected another --out")
        scores.append(score(prompt, entries))
        report(scores[-1])
    return scores


def _claim(folder: Path, config: TrainConfig) -> None:
    """Note what is measured in a folder; refuse one with tries of something else."""
    folder.mkdir(parents=True, exist_ok=True)
    path, text = folder / "config.json", config.model_dump_json(indent=1) + "\n"
    if path.exists() and path.read_text() != text:
        raise ValueError(f"{path}: is another configuration or model; expected another --out")
    write_whole(path, text.encode())


def _try(tries: Sequence[Try], scene: Scene, config: RollConfig) -> list[Entry]:
    rolled = roll(tries, world=scene.world, engine=scene.engine, chat=scene.chat, config=config)
    return [
        Entry(
            step=0,
            episode=it,
            advantage=None,
            findings=rolled.feedback[it.id].findings,
            targets={},
        )
        for it in rolled.episodes
    ]


def score(name: str, entries: Sequence[Entry]) -> Score:
    """Count what some tries came to."""
    episodes = [it.episode for it in entries]
    valid = [it for it in episodes if it.reward is not None]
    replies = [reply for it in episodes for one in it.segments for reply in one.replies]
    return Score(
        name=name,
        solved=sum(it.verdict == "solved" for it in valid),
        valid=len(valid),
        lost=len(episodes) - len(valid),
        calls=sum(len(it.calls) for it in replies),
        fired=dict(Counter(it.kind for entry in entries for it in entry.findings)),
    )


def total(scores: Sequence[Score]) -> Score:
    """Add scores up."""
    fired: Counter[str] = Counter()
    for it in scores:
        fired.update(it.fired)
    return Score(
        name="all",
        solved=sum(it.solved for it in scores),
        valid=sum(it.valid for it in scores),
        lost=sum(it.lost for it in scores),
        calls=sum(it.calls for it in scores),
        fired=dict(fired),
    )


def wilson(hits: int, number: int) -> tuple[float, float]:
    """Return the interval that holds the true share in 95 of 100 cases (Wilson, 1927)."""
    if number == 0:
        return 0.0, 1.0
    share, square = hits / number, Z * Z / number
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt((share * (1 - share) + square / 4) / number) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def line_of(it: Score) -> str:
    """Return a score in one line for people."""
    low, high = wilson(it.solved, it.valid)
    share = it.solved / max(it.valid, 1)
    return (
        f"{it.name}  solved {it.solved} of {it.valid}: {share:.3f} [{low:.3f}, {high:.3f}]"
        f"  lost {it.lost}"
    )


def findings_table(whole: Score) -> Table:
    """Return how often each detector fired, per call of a tool."""
    table = Table(title=f"findings in {whole.calls} calls", title_justify="left")
    for name in ("kind", "fired", "per call"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for row in _rows(whole):
        table.add_row(*row)
    return table


def _rows(whole: Score) -> Iterator[tuple[str, str, str]]:
    for kind, number in sorted(whole.fired.items()):
        yield kind, str(number), f"{number / max(whole.calls, 1):.3f}"
