"""Save a run so that it goes on to the bit where it was stopped, and load it again."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from trainer.canary import Canary
from trainer.checkpoint import CheckpointConfig, CheckpointError, latest, publish, unfinished
from trainer.curriculum import Known, Learned
from trainer.learner import Learner, Learnt
from trainer.model import save_whole
from trainer.ranks import Ranks
from trainer.state import load_tensors, save_tensors

# More make the check slow, and no surer.
MAX_CANARIES = 16
BEHIND = "behind.safetensors"
# For others, and what the run itself goes on from.
MODEL, STATE = "model", "state"
PROGRESS, CANARIES = "progress.json", "canaries.safetensors"


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a run is; with the weights and the seed all that its next steps depend on."""

    # The next one.
    step: int = 0
    # Steps that were skipped, in a row.
    num_bad: int = 0
    # What the teacher is checked on; the first ones that were found.
    canaries: list[Canary] = field(default_factory=list)
    # Weights that the next Episodes are sampled with, those before the policy's last step; None
    # where they are the policy's.
    behind: dict[str, torch.Tensor] | None = None
    # What the curriculum has learned.
    learned: Learned = field(default_factory=Learned)

    def fall_behind(self, learner: Learner) -> dict[str, torch.Tensor]:
        """Keep and return the weights as they are now, while the policy takes its next step."""
        self.behind = {name: it.detach().clone() for name, it in learner.weights().items()}
        return self.behind

    def note(self, learnt: Learnt, canaries: Sequence[Canary]) -> None:
        """Count a step that is done, and keep the canaries that it found."""
        self.step += 1
        self.num_bad = self.num_bad + 1 if learnt.is_skipped else 0
        room = MAX_CANARIES - len(self.canaries)
        self.canaries += canaries[:room]


def save(
    folder: Path,
    progress: Progress,
    learner: Learner,
    *,
    tokenizer: object,
    config: CheckpointConfig,
    ranks: Ranks | None = None,
) -> None:
    """Write a checkpoint, with a model folder in it that transformers loads.

    The first rank writes it; where ranks hold the model together all must call this, and reach the
    same folder.

    Raises:
        OSError: the disk is full or broken; the checkpoints before are untouched.
        RankError: another rank did not come.
    """
    ranks, together = ranks or Ranks(), learner.spread.is_sharded
    if not (ranks.is_first or together):
        return
    whole, what = learner.weights(), f"step {progress.step}, checkpoint"

    def write_state(place: Path) -> None:
        if together:
            ranks.meet(f"{what}, its folder")
        save_tensors(learner.tensors(), place / STATE, together=together)

    def write(place: Path) -> None:
        write_state(place)
        save_whole(learner.model, whole, place / MODEL)
        tokenizer.save_pretrained(place / MODEL)  # type: ignore[attr-defined]
        numbers = {
            "step": progress.step,
            "num_bad": progress.num_bad,
            "first_errors": learner.teacher.first_errors,
            "learned": asdict(progress.learned),
        }
        (place / PROGRESS).write_text(json.dumps(numbers) + "\n")
        save_file(_tensors(progress.canaries), place / CANARIES)
        if progress.behind is not None:
            save_file(progress.behind, place / BEHIND)

    if ranks.is_first:
        publish(folder, progress.step, write, config=config)
    else:
        write_state(unfinished(folder, progress.step))
    if together:
        ranks.meet(f"{what}, to be kept")


def restore(folder: Path, learner: Learner) -> Progress | None:
    """Load the latest checkpoint into a learner; None if there is none.

    It may be of other ranks, that held the model in other parts.

    Raises:
        CheckpointError: it is not as it was written, or of another model.
    """
    place = latest(folder)
    if place is None:
        return None
    try:
        load_tensors(learner.tensors(), place / STATE, together=learner.spread.is_sharded)
        numbers = json.loads((place / PROGRESS).read_text())
        learner.teacher.first_errors = numbers["first_errors"]
        return Progress(
            step=numbers["step"],
            num_bad=numbers["num_bad"],
            canaries=_canaries(load_file(place / CANARIES)),
            behind=load_file(place / BEHIND) if (place / BEHIND).exists() else None,
            learned=_learned(**numbers["learned"]),
        )
    except (FileNotFoundError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{place}: is of another model or version: {reason}") from error


def _learned(*, skill: float, variance: float, known: dict[str, dict[str, Any]]) -> Learned:
    found = {prompt: Known(**it) for prompt, it in known.items()}
    return Learned(skill=skill, variance=variance, known=found)


def _tensors(canaries: list[Canary]) -> dict[str, torch.Tensor]:
    return {
        f"{number:04}/{name}": torch.from_numpy(getattr(canary, name))
        for number, canary in enumerate(canaries)
        for name in ("context_ids", "good_ids")
    }


def _canaries(tensors: dict[str, torch.Tensor]) -> list[Canary]:
    numbers = sorted({name.partition("/")[0] for name in tensors})
    return [
        Canary(
            context_ids=tensors[f"{number}/context_ids"].numpy(),
            good_ids=tensors[f"{number}/good_ids"].numpy(),
        )
        for number in numbers
    ]
