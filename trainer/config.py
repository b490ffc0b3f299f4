"""Read the configuration of a run from TOML, with overrides; name in one line what is wrong."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator
from pydantic.fields import FieldInfo

from trainer.chat import ChatConfig
from trainer.checkpoint import CheckpointConfig
from trainer.credit import CreditConfig
from trainer.curriculum import CurriculumConfig
from trainer.feedback.judge import JudgeConfig
from trainer.feedback.targets import TargetsConfig
from trainer.generate import LocalConfig
from trainer.mesh import MeshConfig
from trainer.model import ModelConfig
from trainer.objective import ObjectiveConfig
from trainer.optimizer import OptimizerConfig
from trainer.ranks import RanksConfig
from trainer.repair import RepairConfig
from trainer.serve import HttpConfig
from trainer.settings import Settings
from trainer.task_env import TaskConfig
from trainer.trackers import TrackersConfig
from trainer.tries import RolloutConfig


class ConfigError(ValueError):
    """A configuration that cannot be used; one line that names the key and what was expected."""


class EngineConfig(Settings):
    """What samples from the policy."""

    kind: Literal["local", "http"] = "local"
    local: LocalConfig = LocalConfig()
    # Of a server; needed for `http`.
    http: HttpConfig | None = None

    @model_validator(mode="after")
    def _has_its_own(self) -> Self:
        if self.kind == "http" and self.http is None:
            raise ValueError("kind http without engine.http, expected its url and model")
        return self


class TrainConfig(Settings):
    """Everything that a run is made of; each component is given its own part alone."""

    # Folder of a run of the factory: Parquet shards of Tasks.
    tasks: Path
    # Every random choice is drawn from it.
    seed: int = 0
    # Steps of the optimizer.
    steps: PositiveInt = 100
    # Prompts of a step, and Episodes of each: their product is the rollouts of a step.
    prompts: PositiveInt = 8
    group: int = Field(default=8, ge=2)
    # Tokens of a packed row at most; how many rows there are never changes the result.
    row_tokens: PositiveInt = 16384
    # Steps that the weights of a rollout lag behind: at 1, rollouts run while the model learns.
    staleness: Literal[0, 1] = 0
    # Steps in a row with a loss or gradient that is no number: each is skipped, then it is enough.
    max_bad_steps: PositiveInt = 3
    # KL per token between what sampled and what trains, at most; None for no bound.
    max_mismatch_kl: PositiveFloat | None = None
    # Which prompts a step has.
    curriculum: CurriculumConfig = CurriculumConfig()
    model: ModelConfig
    chat: ChatConfig = ChatConfig()
    task: TaskConfig = TaskConfig()
    rollout: RolloutConfig = RolloutConfig()
    engine: EngineConfig = EngineConfig()
    credit: CreditConfig = CreditConfig()
    feedback: TargetsConfig = TargetsConfig()
    # Model that is asked besides what could have been better; None for none.
    judge: JudgeConfig | None = None
    # Tries each hint before it counts; None for none.
    repair: RepairConfig | None = None
    objective: ObjectiveConfig = ObjectiveConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    trackers: TrackersConfig = TrackersConfig()
    ranks: RanksConfig = RanksConfig()
    # How the ranks of a run hold the model together; None: each has all of it.
    parallel: MeshConfig | None = None

    @model_validator(mode="after")
    def _is_free_to_choose_experts(self) -> Self:
        if self.parallel is not None and self.rollout.router_replay:
            raise ValueError("rollout.router_replay with parallel, expected one of them")
        return self

    @model_validator(mode="after")
    def _trains_what_it_samples(self) -> Self:
        if self.rollout.temperature != self.objective.temperature:
            raise ValueError(
                f"rollout.temperature {self.rollout.temperature} and objective.temperature"
                f" {self.objective.temperature}; expected the same"
            )
        return self


def load_config(path: Path, *, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read a configuration; an override is `key.of.part=value`, the value as TOML has it.

    Relative paths start where the command does.

    Raises:
        ConfigError: the file, a key or a value cannot be used.
    """
    try:
        given = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}, expected a configuration") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: no TOML: {error}") from error
    for override in overrides:
        _override(given, override)
    try:
        return TrainConfig.model_validate(given)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_complaint(error)}") from error


def equation(config: TrainConfig, *, world: int = 1) -> str:
    """Return the sizes of a step in one line, for people."""
    rollouts = config.prompts * config.group
    ranks = f" over {world} ranks" if world > 1 else ""
    return (
        f"{config.prompts} prompts x {config.group} = {rollouts} rollouts a step{ranks};"
        f" rows of up to {config.row_tokens} tokens, as many as it takes; {config.steps} steps"
    )


def _override(given: dict[str, Any], override: str) -> None:
    name, mark, text = override.partition("=")
    *parents, last = (part.strip() for part in name.split("."))
    if not mark or not last:
        raise ConfigError(f"--set {override}: expected KEY=VALUE, such as optimizer.lr=1e-6")
    place = given
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise ConfigError(f"--set {override}: {parent} is a value, expected a table")
    place[last] = _value(text)


def _value(text: str) -> object:
    """Read a value of TOML; what is none is the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _complaint(error: ValidationError) -> str:
    errors = error.errors()
    # What is missing may be what was misspelt.
    first = next((it for it in errors if it["type"] == "extra_forbidden"), errors[0])
    place = [str(part) for part in first["loc"]]
    name = ".".join(place)
    if first["type"] == "extra_forbidden":
        return f"unknown key {name}{_nearest(place)}"
    if first["type"] == "missing":
        return f"{name} is missing"
    message = first["msg"].removeprefix("Value error, ")
    if not place:
        return message
    given = "" if isinstance(first["input"], dict) else f" {first['input']!r}"
    return f"{name}{given}: {message[:1].lower()}{message[1:]}"


def _nearest(place: Sequence[str]) -> str:
    *parents, last = place
    fields: Mapping[str, FieldInfo] = TrainConfig.model_fields
    for parent in parents:
        fields = _fields_of(fields[parent].annotation)
    near = difflib.get_close_matches(last, fields, n=1)
    known = near or sorted(fields)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"


def _fields_of(annotation: object) -> Mapping[str, FieldInfo]:
    """Return the fields of a part, which may be optional."""
    kinds: Iterable[object] = (annotation, *get_args(annotation))
    return next(
        it.model_fields for it in kinds if isinstance(it, type) and issubclass(it, Settings)
    )
