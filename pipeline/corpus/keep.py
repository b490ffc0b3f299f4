"""Keep a corpus as a run folder with labels beside the attempts, and read it back."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from pipeline.corpus.label import Label
from pipeline.task.attempt import Attempt
from pipeline.task.attempt_shards import write_attempt_shards
from pipeline.task.canonical import canonical_json
from pipeline.task.files import write_whole
from pipeline.task.manifest import ShardError, describe, write_manifest
from pipeline.task.record import Images, Task
from pipeline.task.schema import from_row
from pipeline.task.shards import write_shards

LABELS = "labels.jsonl"
NOTICE = """\
# Labelled transcripts

Made by `regrow corpus` to measure the monitor. Half of the attempts cheat. **Never publish them as
training targets, and keep them out of training data:** they teach how to.

`labels.jsonl` says which attempt is what; `attempts/` alone does not tell. Each hacked attempt has
a pair: an honest attempt at the same task that looks like it.
"""


def write_corpus(
    folder: Path,
    made: Iterable[tuple[Attempt, Label]],
    *,
    tasks: Iterable[Task],
    archives: Iterable[Path],
    config: dict[str, object],
) -> None:
    """Write a corpus, which is one once its manifest is there; any order gives the same bytes.

    Args:
        folder: made when it is not there.
        made: attempts and what they are.
        tasks: that were attempted.
        archives: files of the Tasks' Snapshots.
        config: what the corpus was made with.

    Raises:
        ValueError: two attempts have one id.
        OSError: the disk is full or broken.
    """
    attempts, labels = zip(*sorted(made, key=lambda it: it[0].id), strict=True)
    # Images are of the machine that made them.
    files = list(write_shards(folder, "tasks", [replace(it, images=Images()) for it in tasks]))
    for archive in archives:
        target = folder / "snapshots" / archive.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(archive, target)
        files.append(describe(folder, f"snapshots/{archive.name}"))
    lines = "".join(f"{canonical_json(asdict(label))}\n" for label in labels)
    write_whole(folder / LABELS, lines.encode())
    write_whole(folder / "README.md", NOTICE.encode())
    files += write_attempt_shards(folder, attempts)
    write_manifest(folder, files, config=config)


def read_labels(folder: Path) -> tuple[Label, ...]:
    """Return what the attempts of a corpus are.

    Raises:
        ShardError: the folder is no corpus.
    """
    path = folder / LABELS
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return tuple(from_row(Label, row) for row in rows)
    except FileNotFoundError:
        raise ShardError(f"{path}: no such file, expected the labels of a corpus") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ShardError(f"{path}: {error!r}, expected a label as JSON in each line") from error
