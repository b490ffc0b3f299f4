"""Show how far a run is, read from its done-records alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipeline.factory import Envelope, Factory
from pipeline.task.record import Reject, Repo


@dataclass(slots=True, kw_only=True)
class Tally:
    """Owns what has been read of a run's done-records so far; `update` reads what is new."""

    repos: Sequence[Repo]
    factory: Factory
    # Names of the Repos that are prepared or rejected.
    settled: set[str] = field(default_factory=set)
    waiting: list[Envelope] = field(default_factory=list)
    num_slots: int = 0
    num_tasks: int = 0
    # Told of each Repo, the number of its slots, and of its Reject if it is one.
    on_repo: Callable[[Repo, int, Reject | None], None] | None = None

    def update(self) -> None:
        """Read the records that have come since the last call."""
        for repo in self.repos:
            if repo.name not in self.settled:
                self._settle(repo)
        for slot in list(self.waiting):
            record = self.factory.done.get(slot.key)
            if record is not None:
                self.waiting.remove(slot)
                self.num_tasks += record["status"] == "ok"

    def _settle(self, repo: Repo) -> None:
        key = self.factory.prepare_key(repo)
        record = self.factory.done.get(key)
        if record is None:
            return
        self.settled.add(repo.name)
        result = self.factory.read_prepared(key)
        slots: list[Envelope] = []
        if not isinstance(result, Reject):
            envelope = Envelope(stage="prepare", repo=repo.name, slot=-1, status="ok", key=key)
            slots = list(self.factory.slots(envelope))
        self.waiting += slots
        self.num_slots += len(slots)
        if self.on_repo is not None:
            self.on_repo(repo, len(slots), result if isinstance(result, Reject) else None)


def make_bars(console: Console) -> Progress:
    """Return the bars of a run: Repos, then slots."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )
