"""Show how far a run is, read from its done-records alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipeline.factory import Envelope, Factory
from pipeline.task.origin import Repo
from pipeline.task.reject import Reject


@dataclass(slots=True, kw_only=True)
class Tally:
    """Owns what has been read of a run's done-records so far; `update` reads what is new."""

    repos: Sequence[Repo]
    factory: Factory
    # Names of the Repos that are prepared or rejected.
    settled: set[str] = field(default_factory=set)
    # Units of prepared Repos that are not done.
    waiting: list[Envelope] = field(default_factory=list)
    num_slots: int = 0
    num_tasks: int = 0
    # Told of each Repo, the number of its slots, and of its Reject if it is one.
    on_repo: Callable[[Repo, int, Reject | None], None] | None = None

    @property
    def num_filled(self) -> int:
        """Slots that are done, with a Task or without."""
        return self.num_slots - _num_slots(self.waiting)

    def update(self) -> None:
        """Read the records that have come since the last call."""
        for repo in self.repos:
            if repo.name not in self.settled:
                self._settle(repo)
        for unit in list(self.waiting):
            if self.factory.done.get(unit.key) is not None:
                self.waiting.remove(unit)
                made = self.factory.read_made(unit).values()
                self.num_tasks += sum(len(it.tasks) for it in made)

    def _settle(self, repo: Repo) -> None:
        key = self.factory.prepare_key(repo)
        record = self.factory.done.get(key)
        if record is None:
            return
        self.settled.add(repo.name)
        result = self.factory.read_prepared(key)
        units: list[Envelope] = []
        if not isinstance(result, Reject):
            envelope = Envelope(stage="prepare", repo=repo.name, status="ok", key=key)
            units = list(self.factory.units(envelope))
        self.waiting += units
        num_slots = _num_slots(units)
        self.num_slots += num_slots
        if self.on_repo is not None:
            self.on_repo(repo, num_slots, result if isinstance(result, Reject) else None)


def _num_slots(units: Iterable[Envelope]) -> int:
    return sum(len(it.slots) for it in units)


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
