"""Save a run so that it goes on to the bit where it was stopped, and load it again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from trainer.canary import Canary
from trainer.checkpoint import CheckpointConfig, CheckpointError, latest, publish
from trainer.learner import Learner, Learnt
from trainer.model import save_model, set_weights, weights

# More make the check slow, and no surer.
MAX_CANARIES = 16
BEHIND = "behind.safetensors"
MODEL, OWN, PROGRESS, CANARIES = "model", "learner.pt", "progress.json", "canaries.safetensors"


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a run is; with the weights and the seed all that its next steps depend on."""

    # The next one.
    step: int = 0
    # Steps that were skipped, in a row.
    num_bad: int = 0
    # What the teacher is checked on; the first ones that were found.
    canaries: list[Canary] = field(default_factory=list)
    # Weights that the next Episodes are sampled with: the policy's, or those before its last step.
    behind: dict[str, torch.Tensor]

    def fall_behind(self, model: PreTrainedModel) -> None:
        """Keep the weights as they are now, while the policy takes its next step."""
        self.behind = {name: it.detach().clone() for name, it in weights(model).items()}

    def is_behind(self, model: PreTrainedModel) -> bool:
        """Tell whether these are other tensors than the policy's own."""
        return any(
            it.data_ptr() != self.behind[name].data_ptr() for name, it in weights(model).items()
        )

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
) -> Path:
    """Write a checkpoint, which is also a model folder that transformers loads; return it.

    Raises:
        OSError: the disk is full or broken; the checkpoints before are untouched.
    """

    def write(place: Path) -> None:
        save_model(learner.model, place / MODEL)
        tokenizer.save_pretrained(place / MODEL)  # type: ignore[attr-defined]
        torch.save(learner.state(), place / OWN)
        numbers = {"step": progress.step, "num_bad": progress.num_bad}
        (place / PROGRESS).write_text(json.dumps(numbers) + "\n")
        save_file(_tensors(progress.canaries), place / CANARIES)
        if progress.is_behind(learner.model):
            save_file(progress.behind, place / BEHIND)

    return publish(folder, progress.step, write, config=config)


def restore(folder: Path, learner: Learner) -> Progress | None:
    """Load the latest checkpoint into a learner; None if there is none.

    Raises:
        CheckpointError: it is not as it was written, or of another model.
    """
    place = latest(folder)
    if place is None:
        return None
    try:
        _load(place, learner)
        numbers = json.loads((place / PROGRESS).read_text())
        canaries = _canaries(load_file(place / CANARIES))
        has_behind = (place / BEHIND).exists()
        behind = load_file(place / BEHIND) if has_behind else weights(learner.model)
        return Progress(
            step=numbers["step"], num_bad=numbers["num_bad"], canaries=canaries, behind=behind
        )
    except (AssertionError, KeyError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{place}: is of another model or version: {reason}") from error


def _load(place: Path, learner: Learner) -> None:
    files = sorted((place / MODEL).glob("*.safetensors"))
    found = {name: it for path in files for name, it in load_file(path).items()}
    own = weights(learner.model)
    if found.keys() != own.keys():
        odd = sorted(found.keys() ^ own.keys())[:3]
        raise ValueError(f"its weights differ by {', '.join(odd)}")
    set_weights(learner.model, found)
    learner.load(torch.load(place / OWN, weights_only=True))


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
