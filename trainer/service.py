"""Let many threads share one engine: what they ask for at about the same time is one batch."""

import queue
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future

from torch import Tensor

from trainer.engine import Engine, Generated, Request

# Requests of one step come together, but not in the same instant.
GATHER_S = 0.005

_Asked = tuple[Request, Future[Generated]]


class Service:
    """An engine with a queue before it; a thread of its own empties it, batch by batch."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._is_open = threading.Event()
        self._is_open.set()
        # Held while the engine is at work.
        self._busy = threading.Lock()
        self._worker = threading.Thread(target=self._work, name="engine", daemon=True)
        self._worker.start()

    def complete(self, request: Request) -> Generated:
        """Wait for the answer to a request.

        Raises:
            ValueError: it cannot be answered.
            RuntimeError: the engine failed.
        """
        future: Future[Generated] = Future()
        self._asked.put((request, future))
        return future.result()

    def pause(self) -> None:
        """Finish the batch in work, and begin no other; what waits goes on waiting."""
        self._is_open.clear()
        with self._busy:
            return

    def resume(self) -> None:
        """Go on with what waits."""
        self._is_open.set()

    def sync(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Replace the weights, between two batches.

        Raises:
            EngineError: they are not the weights of this model.
        """
        with self._busy:
            self._engine.sync(weights, version=version)

    def close(self) -> None:
        """Answer what was asked, and end."""
        self.resume()
        self._asked.put(None)
        self._worker.join()
        self._engine.close()

    def _work(self) -> None:
        while first := self._asked.get():
            time.sleep(GATHER_S)
            self._answer_when_open([first, *self._waiting()])

    def _waiting(self) -> Iterator[_Asked]:
        """Yield what has been asked besides, up to the sign to end, which stays."""
        while not self._asked.empty():
            more = self._asked.get()
            if more is None:
                self._asked.put(None)
                return
            yield more

    def _answer_when_open(self, asked: list[_Asked]) -> None:
        while True:
            self._is_open.wait()
            with self._busy:
                # A pause may have come in between.
                if self._is_open.is_set():
                    self._answer(asked)
                    return

    def _answer(self, asked: list[_Asked]) -> None:
        try:
            answers = self._engine.generate([request for request, _ in asked])
        # Whatever it is, those who asked must hear of it.
        except Exception as error:
            if len(asked) == 1:
                asked[0][1].set_exception(error)
                return
            # One of them may be to blame; the others must not suffer from it.
            for one in asked:
                self._answer([one])
        else:
            for (_, future), answer in zip(asked, answers, strict=True):
                future.set_result(answer)
