"""Keep Attempts in the shards of a run: all attempts at a Task are in the same one."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.task.attempt import Attempt
from pipeline.task.manifest import RunFile, ShardError, read_manifest, write_manifest
from pipeline.task.shards import (
    check_unique,
    read_shard,
    shard_name,
    shard_of,
    shard_paths,
    write_shard,
)

FOLDER = "attempts/"
# A transcript is long, and a monitor that is interrupted begins a shard again.
ROWS_PER_SHARD = 128


def write_attempts(run_folder: Path, attempts: Iterable[Attempt]) -> None:
    """Make these the attempts of a run, instead of any that it holds.

    The same attempts in any order give the same bytes. A crash at any moment leaves the old ones
    or the new ones. Only one process may write a run.

    Raises:
        ValueError: two attempts have one id.
        ShardError: the folder holds no run.
        OSError: the disk is full or broken.
    """
    manifest = read_manifest(run_folder)
    new = write_attempt_shards(run_folder, attempts)
    others = (file for file in manifest.files if not file.path.startswith(FOLDER))
    write_manifest(run_folder, [*others, *new], config=manifest.config)


def write_attempt_shards(run_folder: Path, attempts: Iterable[Attempt]) -> list[RunFile]:
    """Write shards of attempts, and return what a manifest must say of them to make them the run's.

    Raises:
        ValueError: two attempts have one id.
        OSError: the disk is full or broken.
    """
    ordered = sorted(attempts, key=lambda attempt: attempt.id)
    check_unique("Attempts", [attempt.id for attempt in ordered])
    count = max(1, -(-len(ordered) // ROWS_PER_SHARD))
    shards: list[list[Attempt]] = [[] for _ in range(count)]
    for attempt in ordered:
        shards[shard_of(attempt.task_id, count)].append(attempt)
    return [
        write_shard(run_folder, shard_name("attempts", number, count), Attempt, shard)
        for number, shard in enumerate(shards)
    ]


def rewrite_attempts(run_folder: Path, file: RunFile, attempts: Iterable[Attempt]) -> None:
    """Replace one shard of attempts, which `attempt_files` gave, in one step.

    Raises:
        ShardError: the folder holds no run.
        OSError: the disk is full or broken; the old shard stays.
    """
    manifest = read_manifest(run_folder)
    ordered = sorted(attempts, key=lambda attempt: attempt.id)
    new = write_shard(run_folder, file.path, Attempt, ordered)
    files = (new if it.path == file.path else it for it in manifest.files)
    write_manifest(run_folder, files, config=manifest.config)


def read_attempts(run_folder: Path) -> Iterator[Attempt]:
    """Yield the attempts of a run, one row group in memory at a time.

    Raises:
        ShardError: the manifest or a shard is not as the run's writer left it.
    """
    for path in shard_paths(run_folder, "attempts"):
        yield from read_shard(path, Attempt)


def attempt_files(run_folder: Path) -> tuple[RunFile, ...]:
    """Return the manifest's entries for shards of attempts, in the order of `shard_paths`.

    Raises:
        ShardError: the folder holds no run.
    """
    return tuple(it for it in read_manifest(run_folder).files if it.path.startswith(FOLDER))


def kept_attempts(run_folder: Path) -> tuple[RunFile, ...]:
    """Return what a new manifest of a run must keep; nothing where there is no run to read."""
    try:
        return attempt_files(run_folder)
    except ShardError:
        return ()
