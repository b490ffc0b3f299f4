"""Read and switch `manifest.json`, the one page that says which files a run consists of."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipeline.task.files import remove_temporaries, sync, write_whole
from pipeline.task.record import SCHEMA_VERSION
from pipeline.task.schema import from_row

MANIFEST = "manifest.json"
PENDING = ".pending"
SHARDS = "*-?????-of-?????.parquet"
# What each folder of a run consists of; nothing else in it is ours to remove.
OWNED = {
    "tasks": SHARDS,
    "rejects": SHARDS,
    "attempts": SHARDS,
    "snapshots": f"{'[0-9a-f]' * 64}.tar.zst",
    "transcripts": f"*-{'[0-9a-f]' * 12}.jsonl",
}


class ShardError(ValueError):
    """A run directory is not what its manifest says; one line with file, found, expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One file of a run.

    Example: `RunFile(path="tasks/tasks-00000-of-00001.parquet", sha256="5e…", num_bytes=9120,
    num_rows=12)`.
    """

    # Relative to the run directory, `/` between parts.
    path: str
    sha256: str
    num_bytes: int
    # Zero for files without rows.
    num_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What `manifest.json` says."""

    schema_version: int
    # The run configuration, as JSON can hold it.
    config: Mapping[str, object]
    # Sorted by path.
    files: tuple[RunFile, ...]


def read_manifest(run_folder: Path) -> Manifest:
    """Return the manifest of a run.

    Raises:
        ShardError: it is absent, not a manifest, or of another schema version.
    """
    path = run_folder / MANIFEST
    try:
        plain = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ShardError(f"{path}: no such file, expected the manifest of a finished run") from None
    except ValueError as error:
        raise ShardError(f"{path}: not JSON ({error}), expected a manifest") from error
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise ShardError(f"{path}: schema version {version!r}, expected {SCHEMA_VERSION}")
    return _manifest(path, plain)


def write_manifest(
    run_folder: Path, files: Iterable[RunFile], *, config: Mapping[str, object]
) -> None:
    """Make `files` the run, in one step; what the run held before goes only after that.

    Call it once, when every file is written. A crash at any moment leaves the old run or the new
    one, and the next call cleans up. Only one process may write a run.
    """
    ordered = tuple(sorted(files, key=lambda file: file.path))
    manifest = Manifest(schema_version=SCHEMA_VERSION, config=config, files=ordered)
    text = json.dumps(dataclasses.asdict(manifest), indent=1, sort_keys=True) + "\n"
    write_whole(run_folder / MANIFEST, text.encode())
    _settle(run_folder, ordered)


def describe(run_folder: Path, path: str, *, num_rows: int = 0) -> RunFile:
    """Return the manifest entry of a file that is already in its place."""
    with (run_folder / path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return RunFile(path=path, sha256=digest, num_bytes=file.tell(), num_rows=num_rows)


def pending_path(run_folder: Path, file: RunFile) -> Path:
    """Return where a new file waits, hidden, until the manifest names it.

    The name holds the content hash, so that a new shard never touches an old one of its name.
    """
    place = run_folder / file.path
    return place.with_name(f".{place.name}.{file.sha256}{PENDING}")


def verified(run_folder: Path, file: RunFile) -> Path:
    """Return where a file of the manifest is, its content checked.

    Raises:
        ShardError: it is missing or holds something else.
    """
    pending = pending_path(run_folder, file)
    # After a crash between the manifest's switch and the renames the new shard still waits.
    path = pending if pending.exists() else run_folder / file.path
    try:
        found = describe(run_folder, path.relative_to(run_folder).as_posix())
    except FileNotFoundError:
        raise ShardError(f"{path}: no such file, expected sha256 {file.sha256}") from None
    if found.sha256 != file.sha256:
        raise ShardError(f"{path}: sha256 {found.sha256}, expected {file.sha256}")
    return path


def check_files(run_folder: Path) -> None:
    """Check the content of every file of a run.

    Raises:
        ShardError: one is missing or holds something else.
    """
    for file in read_manifest(run_folder).files:
        verified(run_folder, file)


def _manifest(path: Path, plain: Mapping[str, object]) -> Manifest:
    config, entries = plain.get("config"), plain.get("files")
    if not (isinstance(config, dict) and isinstance(entries, list)):
        raise ShardError(f"{path}: no object `config` or no list `files`, expected both")
    files = tuple(_run_file(path, entry) for entry in entries)
    return Manifest(schema_version=SCHEMA_VERSION, config=config, files=files)


def _run_file(path: Path, entry: object) -> RunFile:
    try:
        file = from_row(RunFile, entry) if isinstance(entry, dict) else None
        if file and not {"..", "/"} & set(PurePosixPath(file.path).parts):
            return file
    except (KeyError, TypeError):
        pass
    raise ShardError(f"{path}: {entry!r} in `files`, expected path, sha256, num_bytes, num_rows")


def _settle(run_folder: Path, files: tuple[RunFile, ...]) -> None:
    """Move waiting files to their places, then remove what the manifest no longer names."""
    for file in files:
        pending = pending_path(run_folder, file)
        if pending.exists():
            pending.replace(run_folder / file.path)
    named = {run_folder / file.path for file in files}
    for folder in {path.parent for path in named} | _owned_folders(run_folder):
        sync(folder)
        owned = folder.glob(OWNED.get(folder.name, SHARDS))
        for stale in {*owned, *folder.glob(f".*{PENDING}")} - named:
            stale.unlink()
        remove_temporaries(folder)


def _owned_folders(run_folder: Path) -> set[Path]:
    return {run_folder / name for name in OWNED if (run_folder / name).is_dir()}
