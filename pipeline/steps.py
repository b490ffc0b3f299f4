"""The pipeline on one page: manifest entries in, done-records out, stage by stage."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from pipeline.factory import Envelope, Factory
from pipeline.task.origin import Repo

# The stages and what flows between them; `transforms.py` is the same on Beam:
#
#   Repo ─> fetch ─> environment ─> baseline ─> trace ─> features          = Factory.prepare
#        ─> deletion by the agent ─> validation ─> instruction
#        ─> leak scan ─> Task                                              = Factory.make
#        ─> finalise: done-records ─> shards ─> manifest
#
# Each stage answers with its result or a Reject; both end up in a done-record, and an Envelope
# that names the record is all that moves.

In = TypeVar("In")
Out = TypeVar("Out")


def generate(repos: Iterable[Repo], *, factory: Factory, jobs: int) -> Iterator[Envelope]:
    """Run every stage over the Repos with a plain loop: the twin of the Beam pipeline."""
    prepared = list(prepare(repos, factory=factory, jobs=jobs))
    yield from prepared
    yield from make(units(prepared, factory=factory), factory=factory, jobs=jobs)


def prepare(repos: Iterable[Repo], *, factory: Factory, jobs: int) -> Iterator[Envelope]:
    """Fetch, build, measure and trace each Repo; find its candidate features."""
    return in_window(factory.prepare, repos, width=jobs)


def units(prepared: Iterable[Envelope], *, factory: Factory) -> Iterator[Envelope]:
    """Deal each prepared Repo's slots to units of work; a slot makes one task at most."""
    for envelope in prepared:
        yield from factory.units(envelope)


def make(units: Iterable[Envelope], *, factory: Factory, jobs: int) -> Iterator[Envelope]:
    """Delete, validate and describe the candidates of each slot until one is a Task."""
    return in_window(factory.make, units, width=jobs)


def in_window(work: Callable[[In], Out], items: Iterable[In], *, width: int) -> Iterator[Out]:
    """Apply `work` to the items in threads, `width` at once; yield results as they come.

    Long and short items mix without idle threads: the next item starts when any one ends. The
    first exception is raised after the items at work have ended.
    """
    with ThreadPoolExecutor(max_workers=width, thread_name_prefix="slot") as pool:
        running: set[Future[Out]] = set()
        for item in items:
            if len(running) >= width:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
            running.add(pool.submit(work, item))
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
