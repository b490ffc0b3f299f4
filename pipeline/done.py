"""Keep what each unit of work came to, so that a rerun starts where the last one stopped."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.task.canonical import canonical_json
from pipeline.task.files import remove_temporaries, write_whole

KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class DoneStore:
    """Done-records of a run, one JSON file each; any number of processes may put and get.

    The key is the content id of the work's whole input, so a changed input is new work.

    Example: `DoneStore(run / "done").put(content_id(repo, seed), {"status": "ok"})`.
    """

    # Made by the first `put`.
    folder: Path

    def get(self, key: str) -> dict[str, object] | None:
        """Return the record, or None when there is none or only a torn one."""
        return _parse(self._path(key))

    def put(self, key: str, value: Mapping[str, object]) -> None:
        """Store a record; of two writers of one key the last wins, whole.

        Raises:
            OSError: the disk is full or broken; the key keeps what it had.
        """
        text = canonical_json(dict(value)) + "\n"
        write_whole(self._path(key), text.encode("utf-8", "backslashreplace"))

    def drop(self, key: str) -> None:
        """Forget a record, if there is one."""
        self._path(key).unlink(missing_ok=True)

    def keys(self) -> Iterator[str]:
        """Yield the key of every readable record, in sorted order."""
        for path in sorted(self.folder.glob(f"[!.]*{SUFFIX}")):
            if _parse(path) is not None:
                yield path.name.removesuffix(SUFFIX)

    def sweep(self) -> None:
        """Remove what crashed writers left behind; call it before the writers start."""
        remove_temporaries(self.folder)

    def _path(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ValueError(f"done-record key {key!r}: expected letters, digits, '.', '_', '-'")
        return self.folder / f"{key}{SUFFIX}"


def part_of(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return the record that stands in another one under a name."""
    part = record[name]
    assert isinstance(part, dict), name
    return part


def _parse(path: Path) -> dict[str, object] | None:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None
