import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.trainer.asking import ids_of, request
from trainer.engine import Generated, Request
from trainer.generate import LocalEngine
from trainer.model import weights
from trainer.service import Service
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)


@pytest.fixture
def service() -> Iterator[Service]:
    it = Service(LocalEngine(random_model(tiny_config("dense"), seed=1)))
    yield it
    it.close()


def test_threads_get_the_answers_to_their_own_requests(service: Service) -> None:
    asked = [request(ids_of(n + 1, seed=n), seed=n) for n in range(16)]
    expected = LocalEngine(random_model(tiny_config("dense"), seed=1)).generate(asked)
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(service.complete, asked))
    assert [it.ids.tolist() for it in said] == [it.ids.tolist() for it in expected]


def test_what_waits_during_a_pause_is_kept_and_answered_with_the_new_weights(
    service: Service,
) -> None:
    service.pause()
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(service.complete, request([n])) for n in range(4)]
        # Longer than an open service takes to answer.
        threading.Event().wait(0.3)
        assert not any(it.done() for it in waiting)
        service.sync(weights(random_model(tiny_config("dense"), seed=2)), version=1)
        service.resume()
        assert {it.result().version for it in waiting} == {1}


def test_a_request_that_cannot_be_answered_does_not_harm_its_neighbours(service: Service) -> None:
    service.pause()
    with ThreadPoolExecutor(3) as pool:
        good, bad, other = (
            pool.submit(service.complete, request(ids)) for ids in ([1], [999], [2])
        )
        service.resume()
        with pytest.raises(ValueError, match=r"ids \[999\]"):
            bad.result()
        assert good.result().version == other.result().version == 0


class Slow:
    """Takes its time for one request, and fails where it is told to."""

    version = 0

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._error = error

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        self.begun.set()
        assert self.go_on.wait(10)
        if self._error is not None:
            raise self._error
        logprobs = np.zeros(1, np.float32)
        said = Generated(ids=ids_of(1, seed=0), logprobs=logprobs, stop="end", version=0)
        return [said] * len(requests)

    def sync(self, weights: object, *, version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_closing_answers_what_waits_behind_a_batch_and_ends() -> None:
    engine = Slow()
    service = Service(engine)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(service.complete, request([1]))
        assert engine.begun.wait(10)
        waiting = pool.submit(service.complete, request([2]))
        closing = pool.submit(service.close)
        threading.Event().wait(0.1)
        engine.go_on.set()
        closing.result(timeout=10)
        assert first.result(timeout=10).version == waiting.result(timeout=10).version == 0


def test_whatever_an_engine_raises_reaches_who_asked_and_the_next_one_is_served() -> None:
    engine = Slow(AssertionError("of the engine's own"))
    engine.go_on.set()
    service = Service(engine)
    for _ in range(2):
        with pytest.raises(AssertionError, match="of the engine's own"):
            service.complete(request([1]))
    service.close()
