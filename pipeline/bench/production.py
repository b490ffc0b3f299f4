"""Make tasks of one library in a given way, and meter what that takes."""

import os
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.desk import Folders, open_desk
from pipeline.index import package_index
from pipeline.make import make_task
from pipeline.prepare import Prepared, prepare_repo
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.selection import Choice
from pipeline.snapshot import snapshot_tree
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.record import Feature, Task
from pipeline.task.reject import Reject
from pipeline.task.suite import WHOLE, run_suite
from pipeline.validate import Method

SEED = 0
NUM_SUITE_RUNS = 3


Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered(Generic[Result]):
    """What came of some work, and what it took."""

    results: tuple[Result, ...]
    wall_s: float
    # Of everything: jobs, sandboxes that stay, and this process.
    cpu_s: float


class Works:
    """A library that is prepared, and where its tasks are made.

    Example: `Works(repo, folder=Path("…")).produce(features, method="fast")`.
    """

    def __init__(self, repo: Repo, *, folder: Path) -> None:
        """Fetch, build, measure and trace the library.

        Raises:
            CommandFailedError: it gives no candidates.
        """
        self._folders = Folders(
            run=folder / "run",
            cache=folder / "cache",
            index=package_index(),
            scratch=folder / "work",
            manifest_folder=REPOS,
        )
        sandbox = open_sandbox("bubblewrap", warm=True)
        try:
            prepared = prepare_repo(
                repo, folders=self._folders, sandbox=sandbox, choice=Choice(seed=SEED)
            )
        finally:
            sandbox.stop()
        if isinstance(prepared, Reject):
            raise CommandFailedError(f"{repo.name}: {prepared.reason}: {prepared.detail}")
        self.prepared: Prepared = prepared

    def candidates(self) -> tuple[Feature, ...]:
        """Return the candidates in the order in which they are tried."""
        return tuple(feature for slot in self.prepared.slots for feature in slot)

    def tree(self) -> Path:
        """Return the folder of the Snapshot's files."""
        prepared = self.prepared
        archive = self._folders.archive(prepared.snapshot)
        return snapshot_tree(archive, cache=self._folders.cache)

    def suite_cpu_s(self) -> float:
        """Return the CPU seconds of the suite itself: warm, unguarded, the best of a few runs."""
        sandbox = open_sandbox("bubblewrap", warm=True)
        try:
            desk = self.desk(sandbox)
            wall_s = self.prepared.repo.test.wall_s
            limits = Limits(wall_s=60 + 20 * wall_s, cpu_s=60 + 20 * wall_s)
            run = partial(run_suite, sandbox, tree=desk.tree, bench=desk.bench, limits=limits)
            return min(run(request=WHOLE).finished.cpu_s for _ in range(NUM_SUITE_RUNS))
        finally:
            sandbox.stop()

    def produce(self, features: Sequence[Feature], *, method: Method) -> Metered[Task | Reject]:
        """Make Tasks: on all cores in warm workers, or plainly, one by one in fresh sandboxes."""
        make = partial(self._make, method=method)
        return self.meter(make, features, is_plain=method == "plain")

    def meter(
        self,
        work: Callable[[Item, Desk], Result],
        items: Sequence[Item],
        *,
        is_plain: bool = False,
    ) -> Metered[Result]:
        """Do some work on each item, and meter all that it takes."""
        began_s, cpu_s = time.monotonic(), used_cpu_s()
        sandbox = open_sandbox("bubblewrap", warm=not is_plain)
        try:
            desk = self.desk(sandbox)
            with ThreadPoolExecutor(1 if is_plain else num_cores()) as pool:
                results = tuple(pool.map(lambda item: work(item, desk), items))
        finally:
            sandbox.stop()
        return Metered(
            results=results, wall_s=time.monotonic() - began_s, cpu_s=used_cpu_s() - cpu_s
        )

    def desk(self, sandbox: Sandbox) -> Desk:
        """Return the desk of the library for a sandbox."""
        prepared = self.prepared
        desk = open_desk(
            prepared.snapshot,
            prepared.environment,
            command=prepared.repo.test,
            folders=self._folders,
            sandbox=sandbox,
        )
        assert isinstance(desk, Desk), desk
        return desk

    def _make(self, feature: Feature, desk: Desk, *, method: Method) -> Task | Reject:
        return make_task(
            feature,
            prepared=self.prepared,
            desk=desk,
            folders=self._folders,
            seed=SEED,
            method=method,
        )


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def used_cpu_s() -> float:
    """Return the CPU seconds of this process and of all that it has started and seen end."""
    found = [resource.getrusage(it) for it in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in found)
