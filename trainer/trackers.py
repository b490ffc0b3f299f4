"""Hand the numbers of each step to whoever keeps them: a JSONL file always, others if wanted."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from pipeline.task.files import write_whole
from trainer.settings import Settings

METRICS = "metrics.jsonl"

TrackerName = Literal["trackio", "tensorboard", "wandb"]


class TrackersConfig(Settings):
    """Who is told of each step, besides `metrics.jsonl` in the folder of the run."""

    names: tuple[TrackerName, ...] = ()
    # As the run is filed there.
    project: str = "regrow"


class Tracker(Protocol):
    """Keeps numbers by step."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Keep the numbers of a step."""

    def close(self) -> None:
        """Write down what is not written yet."""


class JsonlTracker:
    """Owns the file with one line a step."""

    def __init__(self, path: Path, *, next_step: int) -> None:
        """Go on before a step: what a run wrote for it and later ones before it died goes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if _step_of(line) < next_step]
        write_whole(path, "".join(kept).encode())
        self._file = path.open("a")

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Append a line; a number that is none becomes null."""
        finite = {key: it if math.isfinite(it) else None for key, it in sorted(numbers.items())}
        self._file.write(json.dumps({"step": step, **finite}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def require_trackers(config: TrackersConfig) -> None:
    """Hold a machine to having what is wanted, before a run spends anything.

    Raises:
        ValueError: a tracker is not installed.
    """
    for name in config.names:
        if find_spec(name) is None:
            raise ValueError(f"trackers.names {name}: not installed, expected `pip install {name}`")


def open_trackers(config: TrackersConfig, *, folder: Path, next_step: int) -> Sequence[Tracker]:
    """Open the file and all trackers of a run in a folder, that goes on at a step.

    Raises:
        ValueError: a tracker is not installed.
    """
    require_trackers(config)
    others = [_OPENERS[name](config, folder, next_step) for name in config.names]
    return [JsonlTracker(folder / METRICS, next_step=next_step), *others]


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of each step of a run, in order; a line that was cut short is none."""
    lines = (folder / METRICS).read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if _step_of(line) < math.inf]


# Optional packages, slow to import: each is imported when it is asked for.
def _open_trackio(config: TrackersConfig, folder: Path, _next_step: int) -> Tracker:
    # Read when the package is imported.
    os.environ.setdefault("TRACKIO_DIR", str(folder.absolute() / "trackio"))
    trackio: Any = import_module("trackio")
    trackio.init(project=config.project, name=folder.name, resume="allow", **_TRACKIO)
    return _Called(trackio.log, trackio.finish)


# Numbers alone: nothing is shown in a notebook, and no thread watches the machine.
_TRACKIO = {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}


def _open_wandb(config: TrackersConfig, folder: Path, _next_step: int) -> Tracker:
    run: Any = import_module("wandb").init(
        project=config.project, name=folder.name, id=folder.name, dir=folder, resume="allow"
    )
    return _Called(run.log, run.finish)


def _open_tensorboard(_config: TrackersConfig, folder: Path, next_step: int) -> Tracker:
    writer: Any = import_module("torch.utils.tensorboard").SummaryWriter(
        str(folder / "tensorboard"), purge_step=next_step
    )

    def log(numbers: Mapping[str, float], *, step: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return _Called(log, writer.close)


_OPENERS: dict[TrackerName, Callable[[TrackersConfig, Path, int], Tracker]] = {
    "trackio": _open_trackio,
    "tensorboard": _open_tensorboard,
    "wandb": _open_wandb,
}


class _Called:
    """Hands numbers to functions of another package."""

    def __init__(self, log: Callable[..., object], close: Callable[[], object]) -> None:
        self._log, self._close = log, close

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Pass the numbers of a step on."""
        self._log(dict(numbers), step=step)

    def close(self) -> None:
        """Tell the package that the run is over."""
        self._close()


def _step_of(line: str) -> float:
    """Return the step of a line; one that was cut short has none and is never kept."""
    try:
        return float(json.loads(line)["step"]) if line.endswith("\n") else math.inf
    except (ValueError, KeyError, TypeError):
        return math.inf
