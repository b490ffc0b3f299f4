import base64
import copy
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from tests.trainer.asking import ids_of, request
from tests.trainer.played import played
from trainer.ask import Patience
from trainer.engine import EngineError
from trainer.generate import LocalEngine
from trainer.model import weights
from trainer.serve import HttpConfig, HttpEngine
from trainer.server import Server
from trainer.tiny import random_model, tiny_config

torch.set_num_threads(1)

PATIENCE = Patience(max_tries=2, pause_s=0, timeout_s=60)


def tiny(*, seed: int) -> Any:
    return random_model(tiny_config("dense"), seed=seed)


def engine(url: str, folder: Path, *, model: str = "policy", version: int = 0) -> HttpEngine:
    config = HttpConfig(url=url, model=model, weights_folder=folder, patience=PATIENCE)
    return HttpEngine(config, version=version)


@contextmanager
def serving(model: Any) -> Iterator[str]:
    with Server(("127.0.0.1", 0), model, name="policy") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def said(it: Any) -> tuple[Any, ...]:
    return it.ids.tolist(), it.logprobs.tolist(), it.stop, it.version


def test_a_served_model_says_what_a_local_one_says_before_and_after_a_sync(tmp_path: Path) -> None:
    asked = [
        request(ids_of(9 * n + 1, seed=n), seed=n, stop=tuple(range(20)), temperature=n % 3 / 2)
        for n in range(12)
    ]
    local = LocalEngine(tiny(seed=1))
    with serving(tiny(seed=1)) as url:
        http = engine(url, tmp_path)
        assert list(map(said, http.generate(asked))) == list(map(said, local.generate(asked)))
        for it in (http, local):
            it.sync(weights(tiny(seed=2)), version=4)
        assert list(map(said, http.generate(asked))) == list(map(said, local.generate(asked)))
        assert http.version == 4
        assert http.generate([]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_served_mixture_of_experts_tells_what_a_local_one_tells(tmp_path: Path) -> None:
    def mixture() -> Any:
        return random_model(tiny_config("qwen3_moe"), seed=1)

    plain = request(ids_of(9, seed=0), seed=1)
    wanted = replace(plain, wants_experts=True)
    (local,) = LocalEngine(mixture()).generate([wanted])
    with serving(mixture()) as url:
        bare, served = engine(url, tmp_path).generate([plain, wanted])
    assert bare.experts is None
    assert local.experts is not None
    assert served.experts is not None
    assert served.experts.dtype == local.experts.dtype
    assert served.experts.tolist() == local.experts.tolist()


def as_base64(array: Any) -> str:
    data = io.BytesIO()
    np.save(data, array)
    return base64.b64encode(data.getvalue()).decode()


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "",
        "@@",
        base64.b64encode(b"no array").decode(),
        as_base64(np.zeros((2, 1, 1), np.uint8)),
        as_base64(np.zeros((3, 1), np.uint8)),
        as_base64(np.zeros((3, 1, 1), np.float32)),
        as_base64(np.array([{}] * 3, object)),
    ],
)
def test_experts_that_are_wanted_and_not_told_are_a_failure_of_the_server(
    tmp_path: Path, sent: str | None
) -> None:
    answer = copy.deepcopy(GOOD)
    answer["choices"][0]["routed_experts"] = sent  # type: ignore[index]
    wanted = replace(request([1, 2], new=3, stop=(5,)), wants_experts=True)
    with played(lambda _: (200, answer)) as seen:
        with pytest.raises(EngineError, match=r"/v1/completions: routed_experts .*expected"):
            engine(seen.url, tmp_path).generate([wanted])
        assert seen.asked[0][2]["return_routed_experts"] is True
        # Others do not care.
        engine(seen.url, tmp_path).generate([replace(wanted, wants_experts=False)])


def test_an_answer_of_another_version_of_the_weights_is_refused(tmp_path: Path) -> None:
    with serving(tiny(seed=1)) as url:
        with pytest.raises(EngineError, match="weights of version 0, expected 5"):
            engine(url, tmp_path, version=5).generate([request([1])])
        first, second = engine(url, tmp_path), engine(url, tmp_path)
        first.sync(weights(tiny(seed=2)), version=1)
        assert first.generate([request([1])])[0].version == 1
        with pytest.raises(EngineError, match="weights of version 1, expected 0"):
            second.generate([request([1])])


def test_after_a_refused_sync_the_old_weights_are_served_under_their_old_version(
    tmp_path: Path,
) -> None:
    with serving(tiny(seed=1)) as url:
        http = engine(url, tmp_path)
        before = said(http.generate([request([1])])[0])
        other = {"model.norm.weight": torch.ones(3)}
        with pytest.raises(EngineError, match=r"status 400: .* missing"):
            http.sync(other, version=1)
        assert said(http.generate([request([1])])[0]) == before
    assert list(tmp_path.iterdir()) == []


def test_what_the_server_cannot_answer_is_final_and_says_why(tmp_path: Path) -> None:
    with serving(tiny(seed=1)) as url:
        with pytest.raises(EngineError, match="status 404: there is no model 'other' here"):
            engine(url, tmp_path, model="other").generate([request([1])])
        with pytest.raises(EngineError, match=r"status 400: .*request 0: ids \[999\]"):
            engine(url, tmp_path).generate([request([1]), request([999])])
    with pytest.raises(EngineError, match="asked 2 times"):
        engine(url, tmp_path).generate([request([1])])
    with pytest.raises(EngineError, match="asked 2 times"):
        engine(url, tmp_path).sync({}, version=1)
    assert list(tmp_path.iterdir()) == []


GOOD = {
    "choices": [
        {
            "index": 0,
            "text": "",
            "token_ids": [7, 5],
            "prompt_token_ids": [1, 2],
            "logprobs": {"token_logprobs": [-0.5, -0.25]},
            "finish_reason": "stop",
        }
    ],
    "metadata": {"weight_version": "0"},
}


def test_an_answer_with_all_that_is_read_is_taken_and_nothing_bends_the_distribution(
    tmp_path: Path,
) -> None:
    asked = request([1, 2], new=3, stop=(5,), temperature=0.5, seed=2**62)
    with played(lambda _: (200, GOOD)) as seen:
        (it,) = engine(seen.url, tmp_path).generate([asked])
    assert said(it) == ([7, 5], [-0.5, -0.25], "end", 0)
    ((path, _, body),) = seen.asked
    assert (path, body) == (
        "/v1/completions",
        {
            "model": "policy",
            "prompt": [1, 2],
            "max_tokens": 3,
            "temperature": 0.5,
            "seed": 2**62,
            "stop_token_ids": [5],
            "ignore_eos": True,
            "logprobs": 1,
            "return_token_ids": True,
            "top_p": 1.0,
            "top_k": -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        },
    )


def choice(**changes: Any) -> Callable[[Any], None]:
    return lambda answer: answer["choices"][0].update(changes)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda it: it.pop("choices"), "expected one choice"),
        (lambda it: it.update(choices=[]), "expected one choice"),
        (lambda it: it["choices"].append(it["choices"][0]), "expected one choice"),
        (lambda it: it.pop("metadata"), "metadata.weight_version"),
        (lambda it: it.update(metadata={"weight_version": "1"}), "version 1, expected 0"),
        (choice(token_ids=None), "expected one choice with token_ids"),
        (choice(token_ids=["7", "5"]), "expected numbers"),
        (choice(token_ids=[7, -5]), "expected numbers"),
        (choice(token_ids=[5]), "1 token_ids, 2 token_logprobs"),
        (choice(token_ids=[], logprobs={"token_logprobs": []}), "0 token_ids"),
        (choice(token_ids=[1, 2, 3, 5], logprobs={"token_logprobs": [0] * 4}), "1 to 3"),
        (choice(logprobs=None), "token_logprobs"),
        (choice(logprobs={"token_logprobs": [-0.5, None]}), "expected finite numbers"),
        (choice(logprobs={"token_logprobs": [-0.5, 0.1]}), "up to 0"),
        (choice(logprobs={"token_logprobs": [-0.5, -float("inf")]}), "finite"),
        (choice(prompt_token_ids=[1, 3]), "expected the 2 ids sent"),
        (choice(finish_reason="abort"), "finish_reason"),
        (choice(finish_reason="length"), "length 2, expected 3"),
        (choice(token_ids=[7, 6]), "stopped at 6, expected one of"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_refused(
    tmp_path: Path, spoil: Callable[[Any], None], complaint: str
) -> None:
    answer = copy.deepcopy(GOOD)
    spoil(answer)
    with played(lambda _: (200, answer)) as seen:
        with pytest.raises(EngineError, match=complaint) as caught:
            engine(seen.url, tmp_path).generate([request([1, 2], new=3, stop=(5,))])
        assert len(seen.asked) == 1
    assert str(caught.value).startswith(f"{seen.url}/v1/completions: ")


@pytest.mark.parametrize(
    "stamp", [{"sha256": "0", "weight_version": "1"}, {"weight_version": "1"}, {}]
)
def test_a_server_that_does_not_serve_the_weights_it_was_sent_is_found_out(
    tmp_path: Path, stamp: dict[str, str]
) -> None:
    with played(lambda _: (200, stamp)) as seen:
        http = engine(seen.url, tmp_path)
        with pytest.raises(EngineError, match=r"/update_weights: .*expected .*'weight_version'"):
            http.sync({"a": torch.ones(1)}, version=1)
    assert http.version == 0
    assert [path for path, _, _ in seen.asked] == [
        "/pause?mode=keep",
        "/update_weights",
        "/resume",
    ]


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="'localhost:8000' is no URL"):
        HttpConfig(url="localhost:8000", model="policy", weights_folder=tmp_path)
