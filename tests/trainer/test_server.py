import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.asking import ids_of, request
from trainer.ask import Patience
from trainer.generate import LocalEngine
from trainer.model import ModelConfig, load_model, weights
from trainer.serve import HttpConfig, HttpEngine
from trainer.tiny import random_model, save_tiny, tiny_config

torch.set_num_threads(1)

BODY = {
    "model": "policy",
    "prompt": [1],
    "max_tokens": 2,
    "seed": 0,
    "ignore_eos": True,
    "logprobs": 1,
    "return_token_ids": True,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_tiny(path, "dense", seed=1)
    return path


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run `python -m trainer.server`, and yield its address."""
    command = [sys.executable, "-m", "trainer.server", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with server(folder) as it:
        yield it


def post(url: str, body: Any) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data)) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["error"]["message"]


def test_a_policy_in_another_process_is_sampled_and_follows_the_trainer(
    folder: Path, tmp_path: Path
) -> None:
    asked = [request(ids_of(30 + n, seed=n), seed=n, stop=(5,)) for n in range(6)]
    with server(folder) as url:
        patience = Patience(max_tries=2, pause_s=0)
        http = HttpEngine(
            HttpConfig(url=url, model="policy", weights_folder=tmp_path, patience=patience)
        )
        local = LocalEngine(load_model(ModelConfig(source=str(folder)), seed=0))
        new = weights(random_model(tiny_config("dense"), seed=2))
        for version in (0, 1):
            for said, expected in zip(http.generate(asked), local.generate(asked), strict=True):
                assert said.ids.tolist() == expected.ids.tolist()
                assert said.logprobs.tolist() == pytest.approx(expected.logprobs, abs=1e-5)
                assert said.version == expected.version == version
            http.sync(new, version=1)
            local.sync(new, version=1)


def test_the_server_names_its_model(url: str) -> None:
    with urllib.request.urlopen(f"{url}/v1/models") as response:
        assert [it["id"] for it in json.loads(response.read())["data"]] == ["policy"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"top_p": 0.9}, "top_p: Input should be greater than or equal to 1, got 0.9"),
        ({"top_k": 50}, "top_k: "),
        ({"min_p": 0.1}, "min_p: "),
        ({"repetition_penalty": 1.1}, "repetition_penalty: "),
        ({"prompt": "text"}, "prompt: "),
        ({"prompt": []}, "ids []"),
        ({"ignore_eos": False}, "ignore_eos: "),
        ({"stream": True}, "stream: Extra inputs are not permitted"),
    ],
)
def test_what_would_be_another_distribution_or_another_protocol_is_refused(
    url: str, changes: dict[str, Any], complaint: str
) -> None:
    status, said = post(f"{url}/v1/completions", BODY | changes)
    assert status == 400
    assert complaint in said


def test_weights_with_another_digest_are_not_served(url: str, folder: Path) -> None:
    before = post(f"{url}/v1/completions", BODY)
    info = {"folder": str(folder), "sha256": "0" * 64, "weight_version": "9"}
    status, said = post(f"{url}/update_weights", {"update_info": info})
    assert status == 400
    assert f"expected {'0' * 64}" in said
    assert post(f"{url}/v1/completions", BODY) == before


def test_a_pause_that_would_drop_requests_and_an_unknown_path_are_refused(url: str) -> None:
    assert post(f"{url}/pause?mode=abort", {}) == (400, "mode ['abort'], expected keep")
    assert post(f"{url}/pause", {}) == (400, "mode None, expected keep")
    assert post(f"{url}/v2/x", {}) == (404, "/v2/x: there is no such path")


def test_a_folder_that_is_no_model_is_one_line_and_a_failure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trainer.server", str(tmp_path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}: ")
    assert len(done.stderr.splitlines()) == 1
