"""Tell what each step came to: a line on the terminal, numbers to trackers, Episodes in Parquet."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from rich.console import Console

from pipeline.task.files import write_whole
from trainer.checkpoint import LATEST
from trainer.config import ConfigError, TrainConfig
from trainer.episode_shards import Entry, write_entries
from trainer.feedback.counts import count_feedback, rates
from trainer.loop import Step
from trainer.ranks import Ranks
from trainer.records import Episode
from trainer.trackers import Tracker, open_trackers

OUT, ERR = Console(highlight=False), Console(stderr=True, highlight=False)
# Without a word, while a step's Episodes run.
QUIET_S = 30.0
CONFIG = "config.json"
# Keys and parts that may change when a run goes on: no number of a step depends on them.
FREE = (
    "checkpoint",
    "engine.http",
    "judge.jobs",
    "judge.patience",
    "judge.url",
    "max_bad_steps",
    "max_mismatch_kl",
    "parallel",
    "ranks",
    "steps",
    "trackers",
)
# Sums of `objective` that are told per token of all sampled ones.
PER_TOKEN = ("is_weight", "is_capped", "mismatch_k1", "mismatch_kl", "entropy")
# That are the same in each step, as weights move but once.
CONSTANT = frozenset({"ratio", "clipped"})


class Reporter(AbstractContextManager["Reporter"]):
    """Owns the trackers of a run, and the folder of its Episodes."""

    def __init__(self, config: TrainConfig, ranks: Ranks, *, folder: Path) -> None:
        self._config, self._ranks, self._folder = config, ranks, folder
        self._trackers: Sequence[Tracker] | None = None
        # Of the step whose Episodes run.
        self._num_ended: Counter[int] = Counter()
        self._told_s = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        if ranks.is_first:
            write_whole(folder / CONFIG, (config.model_dump_json(indent=1) + "\n").encode())

    def __enter__(self) -> Self:
        """Begin; trackers are opened with the first step, which may be any."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all trackers."""
        for tracker in self._trackers or ():
            tracker.close()

    def say(self, line: str) -> None:
        """Print a line once, whatever the number of ranks."""
        if self._ranks.is_first:
            OUT.print(line, soft_wrap=True)

    def watch(self, step: int, episode: Episode) -> None:
        """Tell from time to time that a step's Episodes come along; any thread may call it."""
        self._num_ended[step] += 1
        if self._ranks.is_first and time.monotonic() - self._told_s > QUIET_S:
            self._told_s = time.monotonic()
            number = self._num_ended[step]
            ERR.print(
                f"step {step + 1}: {number} episodes of this rank have ended, the last"
                f" {episode.ending} after {episode.seconds:.0f} s",
                soft_wrap=True,
            )

    def report(self, step: Step) -> None:
        """Keep the Episodes of this rank, then tell what all ranks together came to.

        Raises:
            OSError: the disk is full or broken.
            RankError: another rank did not come.
        """
        name = f"step-{step.number:06}-rank-{self._ranks.rank}.parquet"
        (self._folder / "episodes").mkdir(exist_ok=True)
        write_entries(self._folder / "episodes" / name, _entries(step))
        self._complain(step)
        counted = self._ranks.sum_numbers(count(step), f"step {step.number}, counts of Episodes")
        numbers = measure(step, counted)
        if not self._ranks.is_first:
            return
        if self._trackers is None:
            self._trackers = open_trackers(
                self._config.trackers, folder=self._folder, next_step=step.number
            )
        for tracker in self._trackers:
            tracker.log(step.number, numbers)
        OUT.print(line_of(step, numbers, num_steps=self._config.steps), soft_wrap=True)

    def _complain(self, step: Step) -> None:
        """Say in one line why the judge did not judge Episodes of this rank."""
        if why := next(iter(step.rolled.unjudged.values()), ""):
            number = len(step.rolled.unjudged)
            ERR.print(
                f"step {step.number + 1}: {number} episodes of this rank are not judged: {why}",
                soft_wrap=True,
                markup=False,
            )


def require_same(config: TrainConfig, folder: Path) -> None:
    """Refuse to go on with what another configuration began; without a checkpoint nothing has.

    Raises:
        ConfigError: the first key that differs, what it was and what it is.
    """
    path = folder / CONFIG
    if not (folder / "checkpoints" / LATEST).exists() or not path.exists():
        return
    try:
        before = TrainConfig.model_validate_json(path.read_text())
    except ValueError as error:
        raise ConfigError(f"{path}: is of another version, expected a run of this one") from error
    old, new = _flat(before.model_dump()), _flat(config.model_dump())
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name) and not _is_free(name):
            raise ConfigError(
                f"{folder}: was begun with {name} {old.get(name)}, not {new.get(name)};"
                " expected the same to go on, or another folder"
            )


def count(step: Step) -> dict[str, float]:
    """Count what the Episodes of one rank came to; counts of ranks add up."""
    counted: Counter[str] = Counter(unjudged=len(step.rolled.unjudged))
    for episode in step.rolled.episodes:
        counted.update([f"ended/{episode.ending}", f"verdict/{episode.verdict}", "episodes"])
        if episode.reward is not None:
            counted.update({"valid": 1, "reward": episode.reward})
    return dict(counted) | count_feedback(step.rolled.episodes, step.rolled.feedback)


def measure(step: Step, counted: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of a step by name, as trackers get them."""
    learnt = step.learnt
    tokens, target_tokens = learnt.denominators.tokens, learnt.denominators.target_tokens
    per_token = {name: learnt.sums.get(name, 0.0) / max(tokens, 1) for name in PER_TOKEN}
    others = {name: it for name, it in learnt.sums.items() if name not in CONSTANT.union(PER_TOKEN)}
    means = {"reward": counted.get("reward", 0.0) / max(counted.get("valid", 0.0), 1)}
    if step.canary_error is not None:
        means["canary_error"] = step.canary_error
    return {
        **counted,
        **others,
        **per_token,
        **means,
        **rates(counted),
        **step.picked,
        "tokens": tokens,
        "target_tokens": target_tokens,
        "grad_norm": learnt.grad_norm,
        "lr": learnt.lr,
        "is_skipped": float(learnt.is_skipped),
        "version": step.version,
        "rollout_s": step.rollout_s,
        "learn_s": step.learn_s,
    }


def line_of(step: Step, numbers: Mapping[str, float], *, num_steps: int) -> str:
    """Return the line of a step for people."""
    lost = numbers.get("episodes", 0.0) - numbers.get("valid", 0.0)
    parts = [
        f"step {step.number + 1}/{num_steps}",
        f"reward {numbers['reward']:.3f}",
        f"solved {numbers.get('verdict/solved', 0):.0f} of {numbers.get('episodes', 0):.0f}",
        f"tokens {numbers['tokens']:.0f}",
        f"found {numbers.get('fired', 0):.0f}",
        f"hinted {numbers.get('targets', 0):.0f}",
        f"kl {numbers.get('kl', 0.0) / max(numbers.get('kl_tokens', 0.0), 1):.3f}",
        f"mismatch {numbers['mismatch_kl']:.1e}",
        f"grad {numbers['grad_norm']:.3f}",
        f"{step.rollout_s:.1f} + {step.learn_s:.1f} s",
    ]
    if (rate := numbers.get("curriculum/rate")) is not None:
        parts.append(f"expected {rate:.2f}")
    if unjudged := numbers.get("unjudged"):
        parts.append(f"not judged {unjudged:.0f}")
    if lost:
        parts.append(f"lost {lost:.0f}")
    if step.learnt.is_skipped:
        parts.append("SKIPPED: no number")
    return "  ".join(parts)


def _entries(step: Step) -> list[Entry]:
    return [
        Entry(
            step=step.number,
            episode=episode,
            advantage=step.advantages.get(episode.id),
            findings=step.rolled.feedback[episode.id].findings,
            targets=dict(step.rolled.feedback[episode.id].targets),
        )
        for episode in step.rolled.episodes
    ]


def _flat(part: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return all values by their whole names."""
    flat: dict[str, object] = {}
    for name, it in part.items():
        flat |= _flat(it, f"{prefix}{name}.") if isinstance(it, dict) else {prefix + name: it}
    return flat


def _is_free(name: str) -> bool:
    return any(name == it or name.startswith(f"{it}.") for it in FREE)
