"""Keep checkpoints: folders that appear whole or not at all, and say what is in them."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import Field

from pipeline.task.files import remove_temporaries, sync, write_whole
from trainer.settings import Settings

MANIFEST = "manifest.json"
LATEST = "latest"
HIDDEN = ".unfinished-"


class CheckpointConfig(Settings):
    """How often a run is saved, and how much is kept."""

    # Steps between two checkpoints; the last step of a run always has one.
    every: int = Field(default=1, ge=1)
    # Newest checkpoints that stay.
    keep: int = Field(default=2, ge=1)


class CheckpointError(ValueError):
    """A checkpoint is not as it was written; one line that names the file."""


def publish(
    folder: Path, step: int, write: Callable[[Path], None], *, config: CheckpointConfig
) -> Path:
    """Have `write` fill a new checkpoint, then make it the latest one; return its folder.

    A crash at any moment leaves the checkpoints that were there, and the next call clears up
    after it. `latest` names the new one only when all of it is on disk.

    Raises:
        OSError: the disk is full or broken; the checkpoints before are untouched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder)
    place, hidden = folder / f"step-{step:06}", unfinished(folder, step)
    hidden.mkdir()
    write(hidden)
    _seal(hidden)
    if place.exists():
        # Of a run that came this far, and was set back to a checkpoint before.
        place.rename(folder / f"{HIDDEN}old-{place.name}")
    hidden.rename(place)
    sync(folder)
    write_whole(folder / LATEST, f"{place.name}\n".encode())
    _prune(folder, place, keep=config.keep)
    return place


def unfinished(folder: Path, step: int) -> Path:
    """Return the folder that `publish` has filled."""
    return folder / f"{HIDDEN}step-{step:06}"


def latest(folder: Path) -> Path | None:
    """Return the newest checkpoint, each of its files checked; None if there is none.

    Raises:
        CheckpointError: it is missing, or a file of it is not as it was written.
    """
    try:
        name = (folder / LATEST).read_text().strip()
    except FileNotFoundError:
        return None
    check(folder / name)
    return folder / name


def check(place: Path) -> None:
    """Hold each file of a checkpoint to the sha256 of its manifest.

    Raises:
        CheckpointError: a file is missing, cut short or changed.
    """
    for name, expected in _manifest(place).items():
        try:
            found = _sha256(place / name)
        except OSError as error:
            raise CheckpointError(
                f"{place / name}: {error.strerror}, expected sha256 {expected}"
            ) from error
        if found != expected:
            raise CheckpointError(f"{place / name}: sha256 {found}, expected {expected}")


def _manifest(place: Path) -> Mapping[str, str]:
    path = place / MANIFEST
    try:
        files = json.loads(path.read_bytes())["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}, expected a checkpoint") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: cut short or changed, expected a manifest") from error


def _seal(place: Path) -> None:
    """Write the manifest of a folder, when all that it names is on disk."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for path in files:
        sync(path)
    digests = {path.relative_to(place).as_posix(): _sha256(path) for path in files}
    write_whole(place / MANIFEST, (json.dumps({"files": digests}, indent=1) + "\n").encode())
    for inner in {path.parent for path in files}:
        sync(inner)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prune(folder: Path, newest: Path, *, keep: int) -> None:
    steps = sorted(path for path in folder.glob("step-*") if path.name <= newest.name)
    # What lies behind the newest is of a run that was set back; it would be taken for newer.
    later = [path for path in folder.glob("step-*") if path.name > newest.name]
    for old in [*steps[:-keep], *later]:
        old.rename(folder / f"{HIDDEN}old-{old.name}")
    _clear(folder)


def _clear(folder: Path) -> None:
    remove_temporaries(folder)
    for old in folder.glob(f"{HIDDEN}*"):
        shutil.rmtree(old)
