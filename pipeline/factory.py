"""Carry out units of work with a sandbox, and keep a done-record of each."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.config import Settings, code_digest, tool_versions
from pipeline.done import DoneStore, part_of
from pipeline.hygiene import kept_files
from pipeline.index import IndexUnreachableError
from pipeline.prepare import Prepared, prepare_repo
from pipeline.repo import fetch
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Sandbox, SandboxBrokenError
from pipeline.slots import Made, deal_units, fill_slots
from pipeline.task.canonical import content_id
from pipeline.task.origin import Repo
from pipeline.task.reject import Reject
from pipeline.task.schema import from_row, to_row
from pipeline.uv import InstallError

Status = Literal["ok", "rejected", "error"]

# The machine may recover: a unit that failed through no fault of its own is tried again.
ATTEMPTS = 3
PAUSE_S = 1.0

BROKEN_MACHINE = (SandboxBrokenError, IndexUnreachableError, InstallError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """All that moves between stages: which unit, how it went, where its record is.

    Example: `Envelope(stage="make", repo="toolz", status="ok", key="3f9c…", slots=(0,))`.
    """

    stage: Literal["prepare", "make"]
    repo: str
    status: Status
    # Key of the done-record.
    key: str
    # Numbers of the slots that are filled; none for `prepare`.
    slots: tuple[int, ...] = ()
    # Key of the `prepare` record that the slots belong to.
    prepared: str = ""

    def to_json(self) -> str:
        """Render the envelope for a runner's coder."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "Envelope":
        """Read back what `to_json` rendered."""
        return from_row(Envelope, json.loads(text))


class Factory:
    """Owns the sandbox and the done-records of a run; any thread may call it."""

    def __init__(self, settings: Settings, *, sandbox: Sandbox | None = None) -> None:
        self.settings = settings
        self.sandbox = sandbox or open_sandbox(settings.sandbox, warm=True)
        self.done = DoneStore(settings.out / "done")
        # Key of each unit that the machine failed, with a line on how.
        self.failures: dict[str, str] = {}
        self._prepare_keys: dict[Repo, str] = {}

    def start(self, repos: Iterable[Repo]) -> None:
        """Make ready for a run: forget what crashed writers left, and what may be cured by now."""
        self.done.sweep()
        for key in map(self.prepare_key, repos):
            record = self.done.get(key)
            if record is not None and record.get("again"):
                self.done.drop(key)

    def stop(self) -> None:
        """Kill what runs and refuse what follows."""
        self.sandbox.stop()

    def prepare_key(self, repo: Repo) -> str:
        """Return the key of a Repo's `prepare` record: everything that decides it."""
        if repo not in self._prepare_keys:
            settings = self.settings
            # With Docker a Task has images.
            options = (settings.choice, settings.agent, self.sandbox.name)
            stamp = _stamp(repo, base=settings.manifest_folder)
            key = content_id("prepare", code_digest(), tool_versions(), repo, stamp, *options)
            self._prepare_keys[repo] = key
        return self._prepare_keys[repo]

    def prepare(self, repo: Repo) -> Envelope:
        """Fetch, build, measure and trace a Repo, unless that is done."""
        key = self.prepare_key(repo)
        blank = Envelope(stage="prepare", repo=repo.name, status="ok", key=key)
        return self._settle(blank, lambda: self._prepare(repo))

    def _prepare(self, repo: Repo) -> dict[str, object]:
        result = prepare_repo(
            repo,
            folders=self.settings.folders,
            sandbox=self.sandbox,
            choice=self.settings.choice,
        )
        if isinstance(result, Reject):
            # A host that does not answer today may answer tomorrow, a Python may be installed.
            again = result.reason in {"unreachable", "no_interpreter"}
            return {
                "status": "rejected",
                "repo": repo.name,
                "reject": asdict(result),
                "again": again,
            }
        return {"status": "ok", "repo": repo.name, "prepared": to_row(result)}

    def read_prepared(self, key: str) -> Prepared | Reject:
        """Return what a `prepare` record holds."""
        record = self.done.get(key)
        assert record is not None, key
        if record["status"] == "rejected":
            return from_row(Reject, part_of(record, "reject"))
        return from_row(Prepared, part_of(record, "prepared"))

    def units(self, prepared: Envelope) -> Iterator[Envelope]:
        """Yield the units that fill the slots of a prepared Repo; none for a rejected one."""
        if prepared.status != "ok":
            return
        result = self.read_prepared(prepared.key)
        assert isinstance(result, Prepared)
        mode = self.settings.evidence
        for slots in deal_units(result.slots, mode=mode):
            yield Envelope(
                stage="make",
                repo=prepared.repo,
                status="ok",
                key=content_id("make", prepared.key, mode, slots),
                slots=slots,
                prepared=prepared.key,
            )

    def make(self, unit: Envelope) -> Envelope:
        """Try the candidates of each slot until one is a Task, unless that is done."""
        return self._settle(unit, lambda: self._make(unit))

    def _make(self, unit: Envelope) -> dict[str, object]:
        prepared = self.read_prepared(unit.prepared)
        assert isinstance(prepared, Prepared)
        self._restore(prepared)
        made = fill_slots(
            prepared,
            [prepared.slots[number] for number in unit.slots],
            folders=self.settings.folders,
            sandbox=self.sandbox,
            seed=self.settings.choice.seed,
            mode=self.settings.evidence,
        )
        status = "ok" if any(it.tasks for it in made) else "rejected"
        return {"status": status, "made": [to_row(it) for it in made]}

    def _restore(self, prepared: Prepared) -> None:
        """Fetch a Snapshot again that another run in this folder has removed."""
        folders = self.settings.folders
        if folders.archive(prepared.snapshot).exists():
            return
        fetched = fetch(
            prepared.repo,
            into=folders.run,
            cache=folders.cache,
            index=folders.index,
            base=folders.manifest_folder,
        )
        if isinstance(fetched, Reject):  # it was fetched before: the machine has changed
            raise InstallError(f"{fetched.reason}: {fetched.detail}")

    def read_made(self, unit: Envelope) -> dict[int, Made]:
        """Return what each slot of a unit came to, by its number."""
        record = self.done.get(unit.key)
        assert record is not None, unit.key
        return dict(zip(unit.slots, _made(record), strict=True))

    def _settle(self, blank: Envelope, work: Callable[[], dict[str, object]]) -> Envelope:
        """Look the unit up, else do it and keep its record; a broken machine is an `error`."""
        record = self.done.get(blank.key)
        if record is None or not self._has_files(record):
            try:
                record = _try_again(work)
                self.done.put(blank.key, record)
            except BROKEN_MACHINE as error:
                self.failures[blank.key] = f"{blank.repo}: {type(error).__name__}: {error}"
                return replace(blank, status="error")
        return replace(blank, status="rejected" if record["status"] == "rejected" else "ok")

    def _has_files(self, record: Mapping[str, object]) -> bool:
        """Tell whether no other run in this folder has removed what the record's tasks need."""
        tasks = [task for made in _made(record) for task in made.tasks]
        folders = self.settings.folders
        transcripts = [folders.run / "transcripts" / f"{task.id}.jsonl" for task in tasks]
        archives = [folders.archive(task.snapshot) for task in tasks]
        return all(path.exists() for path in transcripts + archives)


def _stamp(repo: Repo, *, base: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of a plain folder's files; other sources are pinned."""
    if repo.source.kind != "path":
        return []
    tree = base / repo.source.location
    files = sorted(kept_files(tree, project=repo.name))
    stats = [(file.relative_to(tree).as_posix(), file.lstat()) for file in files]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _try_again(work: Callable[[], dict[str, object]]) -> dict[str, object]:
    """Do a unit's work; a machine that failed is given time and tried again."""
    for attempt in range(1, ATTEMPTS):
        try:
            return work()
        except BROKEN_MACHINE:
            time.sleep(PAUSE_S * attempt)
    return work()


def _made(record: Mapping[str, object]) -> tuple[Made, ...]:
    """Return what the slots of a unit came to; nothing of another record."""
    rows = record.get("made", [])
    assert isinstance(rows, list), rows
    return tuple(from_row(Made, row) for row in rows)


@cache
def shared_factory(settings: Settings) -> Factory:
    """Return this process's Factory for a run: what a runner pickles is the settings alone."""
    return Factory(settings)
