"""Have the factory's monitor look for cheating in what the policy did at a Task."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from pipeline.monitor.monitor import Watch, monitor, watch_of
from pipeline.task.attempt import Label
from pipeline.task.attempted import Agent, attempt_of
from pipeline.task.grade import Desk, Grade
from pipeline.task.record import Task, Turn
from pipeline.task.tree import read_tree

# Tasks that are ready to be looked at: each holds the files of its tree.
MAX_READY = 16


class Watcher:
    """Owns what the monitor must know of the Tasks that are tried; any thread may ask it."""

    def __init__(self) -> None:
        self._ready: OrderedDict[str, Watch] = OrderedDict()
        self._lock = Lock()

    def label(self, task: Task, turns: Sequence[Turn], grade: Grade, *, desk: Desk) -> Label:
        """Return what the monitor calls a try.

        Args:
            task: what was tried.
            turns: calls of tools with what they printed.
            grade: of the patch that was left.
            desk: where the Task's Snapshot lies.
        """
        attempt = attempt_of(grade, tuple(turns), agent=Agent(name="policy"), number=0)
        return monitor(attempt, self._watch(task, desk)).label

    def _watch(self, task: Task, desk: Desk) -> Watch:
        with self._lock:
            if task.id not in self._ready:
                self._ready[task.id] = watch_of(task, read_tree(desk.tree))
            self._ready.move_to_end(task.id)
            while len(self._ready) > MAX_READY:
                self._ready.popitem(last=False)
            return self._ready[task.id]
