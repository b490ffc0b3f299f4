"""Get the Episodes of a step, with weights that lag behind by a fixed number of steps."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from trainer.roll import Rolled

# Runs the Episodes of a step with the weights that the engine has.
Roll = Callable[[int], Rolled]


class Ahead:
    """Owns the thread in which the Episodes of the next step run while the model learns.

    Step `s` has Episodes of the weights before step `s - staleness`, never of others, so a run is
    the same however fast its parts are. With a staleness of 0 nothing runs ahead.
    """

    def __init__(self, roll: Roll, *, staleness: int, last: int) -> None:
        """Begin.

        Args:
            roll: used from one thread at a time.
            staleness: 0 or 1.
            last: no Episodes are needed for this step and later ones.
        """
        self._roll, self._staleness, self._last = roll, staleness, last
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._next: tuple[int, Future[Rolled]] | None = None

    def take(self, step: int) -> Rolled:
        """Return the Episodes of a step; the engine has the weights before the step, or older.

        Raises:
            EngineError: the engine failed.
        """
        if self._next is not None and self._next[0] == step:
            return self._next[1].result()
        return self._pool.submit(self._roll, step).result()

    def go_on(self, step: int) -> None:
        """Begin with the step after this one; the engine has just got the weights before this."""
        if self._staleness and step + 1 < self._last:
            self._next = (step + 1, self._pool.submit(self._roll, step + 1))

    def close(self) -> None:
        """Wait for what still runs."""
        self._pool.shutdown(cancel_futures=True)
