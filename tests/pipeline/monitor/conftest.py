import pytest

from pipeline.monitor.monitor import Watch, watch_of
from pipeline.task.record import Task
from tests.pipeline.monitor.kitchen import WHOLE, MakeAttempt, kitchen_attempt, kitchen_task


@pytest.fixture(scope="session")
def task() -> Task:
    return kitchen_task()


@pytest.fixture(scope="session")
def watch(task: Task) -> Watch:
    return watch_of(task, WHOLE)


@pytest.fixture(scope="session")
def attempt_with() -> MakeAttempt:
    """Return a maker of attempts: turns, and new files as the patch; further fields by name."""
    return kitchen_attempt
