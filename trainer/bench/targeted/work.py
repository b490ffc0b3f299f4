"""The pieces of work of the bench, each of which leaves one file.

Names of files hold a digest of the settings, so that what other settings left is never taken for
what these would leave.
"""

import hashlib
import json
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
from trainer.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The policy that the arms of a world start from."""

    world: WorldName
    config: SftConfig

    def path(self, folder: Path) -> Path:
        """Return where it is kept."""
        return folder / f"{self.world}-start-{_digest(self.config)}.safetensors"

    def do(self, folder: Path) -> str:
        """Make it; return a line about it."""
        policy, played = make(self.config)
        temporary = self.path(folder).with_suffix(".part")
        save_file(policy.state_dict(), temporary)
        temporary.rename(self.path(folder))
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

    def do(self, folder: Path) -> str:
        """Train it; return a line about it."""
        policy = self.start.policy(folder)
        result = train(policy, self.arm, config=self.config, seed=self.seed)
        _write(result, self.path(folder))
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

    def do(self, folder: Path) -> str:
        """Measure it; return a line about it. Where it cannot be had, nothing is kept."""
        try:
            result = measure_real(folder, config=self.config)
        except NoModelError as error:
            return f"SmolLM2 not measured: {error}"
        _write(result, self.path(folder))
        return f"SmolLM2: {result.plain:.3f} on listed tools, {result.hinted:.3f} after a hint"

    def result(self, folder: Path) -> RealResult | None:
        """Return what was measured; None where the model could not be had."""
        if not self.path(folder).exists():
            return None
        return RealResult(**json.loads(self.path(folder).read_text()))


def _write(result: ArmResult | RealResult, path: Path) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(json.dumps(asdict(result)))
    temporary.rename(path)


def _digest(*settings: Settings) -> str:
    text = "\n".join(each.model_dump_json() for each in settings)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
