"""The stages of `steps.py` on Beam: one thin transform each."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipeline.config import Settings
from pipeline.factory import Envelope, shared_factory
from pipeline.task.origin import Repo
from pipeline.task.schema import from_row, to_row

# Elements are small: a Repo as plain data, or an Envelope as JSON. Results live in done-records,
# so that nothing is lost with the runner. The chain is linear, without tags, branches or sinks.


class Prepare(beam.PTransform[PCollection[dict[str, object]], PCollection[str]]):
    """Fetch, build, measure and trace each Repo: `steps.prepare`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings

    def expand(self, repos: PCollection[dict[str, object]]) -> PCollection[str]:
        """Spread the Repos over the workers, and work each."""
        return (
            repos
            | "SpreadRepos" >> beam.Reshuffle()
            | "PrepareRepo" >> beam.ParDo(PrepareRepo(self.settings))
        )


class Make(beam.PTransform[PCollection[str], PCollection[str]]):
    """Turn each slot of each prepared Repo into a Task at most: `steps.units`, `steps.make`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings

    def expand(self, prepared: PCollection[str]) -> PCollection[str]:
        """Deal the slots to units, spread those over the workers, and work each."""
        return (
            prepared
            | "DealUnits" >> beam.FlatMap(deal_units, settings=self.settings)
            | "SpreadUnits" >> beam.Reshuffle()
            | "MakeTask" >> beam.ParDo(MakeTask(self.settings))
        )


def deal_units(text: str, settings: Settings) -> Iterator[str]:
    """Yield the units of a prepared Repo."""
    for unit in shared_factory(settings).units(Envelope.from_json(text)):
        yield unit.to_json()


class InWindow(beam.DoFn):
    """Keep `jobs` elements of a bundle at work in threads; emit as they come.

    `steps.in_window` as a DoFn: a bundle is one stream of elements, and the next starts when any
    one ends.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.pool: ThreadPoolExecutor | None = None
        self.running: set[Future[Envelope]] = set()

    def work(self, element: object) -> Envelope:
        """Carry out one unit."""
        raise NotImplementedError

    def setup(self) -> None:
        """Start the threads."""
        self.pool = ThreadPoolExecutor(self.settings.jobs, thread_name_prefix="slot")

    def teardown(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def process(self, element: object) -> Iterable[str]:
        """Start an element; emit those that have ended since."""
        assert self.pool is not None
        if len(self.running) >= self.settings.jobs:
            yield from self._ended()
        self.running.add(self.pool.submit(self.work, element))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Wait for the rest of the bundle."""
        while self.running:
            for text in self._ended():
                yield WindowedValue(text, GlobalWindow().max_timestamp(), (GlobalWindow(),))

    def _ended(self) -> list[str]:
        done, self.running = wait(self.running, return_when=FIRST_COMPLETED)
        return [future.result().to_json() for future in done]


class PrepareRepo(InWindow):
    """Work on Repos."""

    def work(self, element: object) -> Envelope:
        """Prepare one Repo."""
        assert isinstance(element, dict)
        return shared_factory(self.settings).prepare(from_row(Repo, element))


class MakeTask(InWindow):
    """Work on units of slots."""

    def work(self, element: object) -> Envelope:
        """Make the Tasks of a unit's slots."""
        assert isinstance(element, str)
        return shared_factory(self.settings).make(Envelope.from_json(element))


def build(root: beam.Pipeline, repos: Iterable[Repo], settings: Settings) -> PCollection[str]:
    """Put the whole graph onto a pipeline; return the Envelopes of the units."""
    return (
        root
        | "Repos" >> beam.Create([to_row(repo) for repo in repos])
        | "Prepare" >> Prepare(settings)
        | "Make" >> Make(settings)
    )
