"""The pieces of work of the bench, each of which leaves one file.

Names of files hold a digest of the settings, so that what other settings left is never taken for
what these would leave.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file

from trainer.bench.smol import NoModelError
from trainer.bench.targeted.arm_run import ArmResult, train
from trainer.bench.targeted.arms import Arm, RunConfig, WorldName
from trainer.bench.targeted.gap import Play
from trainer.bench.targeted.policy import Policy
from trainer.bench.targeted.real import RealConfig, RealResult, measure_real
from trainer.bench.targeted.sft import SftConfig, check, make
from trainer.bench.targeted.worker import Tell
from trainer.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The policy that the arms of a world start from."""

    world: WorldName
    config: SftConfig

    def path(self, folder: Path) -> Path:
        """Return where it is kept."""
        return folder / f"{self.world}-start-{_digest(self.config)}.safetensors"

    def do(self, folder: Path, *, tell: Tell) -> str:
        """Make it; return a line about it.

        Raises:
            NoGapError: it came out without the gap that the experiment needs.
        """
        policy, played = make(self.config, tell=lambda text: tell(f"{self.world}: {text}"))
        _write(self.path(folder), lambda path: save_file(policy.state_dict(), path))
        return f"{self.world}: error {played.error:.2f}, {played.hinted_error:.2f} after a hint"

    def policy(self, folder: Path) -> Policy:
        """Return the policy, which was made."""
        policy = Policy(self.config.policy)
        policy.load_state_dict(load_file(self.path(folder)))
        return policy

    def play(self, folder: Path) -> Play:
        """Measure how the policy plays, as it was measured when it was made."""
        return check(self.policy(folder), self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An arm, trained from one seed."""

    start: Start
    name: str
    arm: Arm
    config: RunConfig
    seed: int

    def path(self, folder: Path) -> Path:
        """Return where its result is kept."""
        digest = _digest(self.start.config, self.arm, self.config)
        return folder / f"{self.start.world}-{self.name}-{self.seed}-{digest}.json"

    def do(self, folder: Path, *, tell: Tell) -> str:  # noqa: ARG002
        """Train it; return a line about it."""
        policy = self.start.policy(folder)
        result = train(policy, self.arm, config=self.config, seed=self.seed)
        _write_json(self.path(folder), asdict(result))
        return f"{self.start.world} {self.name} {self.seed}: error {result.final.error:.3f}"

    def result(self, folder: Path) -> ArmResult:
        """Return what became of it."""
        kept = json.loads(self.path(folder).read_text())
        return ArmResult(**kept | {"final": Play(**kept["final"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """The real model, before and after a short training."""

    config: RealConfig

    def path(self, folder: Path) -> Path:
        """Return where its result is kept."""
        return folder / f"smollm2-{_digest(self.config)}.json"

    def do(self, folder: Path, *, tell: Tell) -> str:
        """Measure it; return a line about it. Where it cannot be had, only the reason is kept."""
        tell("SmolLM2: to be had and measured, a minute or two")
        try:
            result = measure_real(folder, config=self.config)
        # What reads its format is not among what the trainer needs.
        except (NoModelError, ImportError) as error:
            why = " ".join(str(error).split())
            _write(self._why(folder), lambda path: path.write_text(why))
            return f"SmolLM2 not measured: {why}"
        _write_json(self.path(folder), asdict(result))
        return f"SmolLM2: {result.plain:.4f} on listed tools, {result.hinted:.4f} after a hint"

    def result(self, folder: Path) -> RealResult | str:
        """Return what was measured, or why nothing was."""
        if self.path(folder).exists():
            return RealResult(**json.loads(self.path(folder).read_text()))
        return self._why(folder).read_text()

    def _why(self, folder: Path) -> Path:
        return self.path(folder).with_suffix(".txt")


def _write_json(path: Path, value: dict[str, object]) -> None:
    _write(path, lambda temporary: temporary.write_text(json.dumps(value)))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written whole or not at all."""
    # By its own name: of two runs in one folder, one that was killed may still be writing.
    temporary = path.with_suffix(f".{os.getpid()}.part")
    write(temporary)
    temporary.rename(path)


def _digest(*settings: Settings) -> str:
    text = "\n".join(each.model_dump_json() for each in settings)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
