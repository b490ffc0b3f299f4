import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.trainer.asking import ids_of, request
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
