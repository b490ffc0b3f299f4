"""Say for which model and which clusters the step is planned."""

import tomllib
from pathlib import Path

from pydantic import PositiveFloat, PositiveInt, ValidationError

from trainer.muon.config import GroupChoices
from trainer.muon.costs import Cluster
from trainer.muon.jobs import PlanOptions
from trainer.settings import Settings


class ScaleConfig(Settings):
    """A model, clusters and meshes; the keys of the file that `--config` names.

    Example of such a file: `gpus = [128, 256]` and `[cluster]` with `network_bytes_s = 100e9`.
    """

    # Folder with the config.json of a model of a family that Muon knows; None is Kimi K2.
    model: Path | None = None
    groups: GroupChoices = GroupChoices()
    # Counts of GPUs that the step is planned for.
    gpus: tuple[PositiveInt, ...] = (64, 128, 256, 384, 512, 768, 1024)
    # GPUs that share each dense weight; all others hold replicas of it.
    dense_width: PositiveInt = 8
    # Other widths that are tried where the step is first fast enough.
    other_widths: tuple[PositiveInt, ...] = (16, 32, 64)
    # What a step may take.
    step_s: PositiveFloat = 0.2
    # How fast the GPUs are; each count of `gpus` takes the place of its `num_ranks`.
    cluster: Cluster = Cluster(num_ranks=1)
    plan: PlanOptions = PlanOptions()


def read_config(path: Path) -> ScaleConfig:
    """Read the settings of a file.

    Raises:
        ValueError: it is no TOML, or has a key or a value that the settings have not.
    """
    try:
        return ScaleConfig.model_validate(tomllib.loads(path.read_text()))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: {key}: {first['msg']}") from None
