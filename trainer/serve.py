"""Sample from a model behind an OpenAI-compatible server: ids in, ids out.

The dialect is that of vLLM's server, with SGLang's stamp; `trainer.server` speaks it, too.

`POST /v1/completions`. Sent are `model`, `prompt` (ids), `max_tokens`, `temperature`, `seed`,
`stop_token_ids` with `ignore_eos` (so that nothing else ends a message), `logprobs` 1 and
`return_token_ids`. What would make it another distribution than is trained is switched off by name,
since servers take defaults from the model's folder: `top_p` 1, `top_k` -1, `min_p` 0,
`repetition_penalty` 1, `presence_penalty` 0, `frequency_penalty` 0. Read are `choices[0].token_ids`
(a stop id included), `.prompt_token_ids` (where there: must be the prompt), `.finish_reason`
(`stop` or `length`), `.logprobs.token_logprobs`, and `metadata.weight_version`. Log-probabilities
must be those at the request's temperature: start vLLM with `--logprobs-mode processed_logprobs`.
For router replay `return_routed_experts` is sent, and `choices[0].routed_experts` read: base64 of
an array [tokens - 1, layers, experts of a token] in NumPy's own format (vLLM: start it with
`--enable-return-routed-experts`).

`POST /pause?mode=keep`, `POST /resume`: no request is lost in between.

`POST /update_weights`. Sent is `update_info` with `folder` (it holds `model.safetensors`),
`sha256` (`trainer.transfer.digest` of its tensors) and `weight_version`. Read are `sha256`, of the
tensors that are served from now on, and `weight_version`. Stock servers take weights in other ways
(NCCL, IPC): for this one they need a worker extension.

Errors have a status of 4xx or 5xx and an `error.message`; which are asked again: `trainer.ask`.
"""

import base64
import io
import math
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from pydantic import PositiveInt, field_validator
from torch import Tensor

from trainer.ask import Patience, ask, show
from trainer.engine import EngineError, Generated, Request, check_requests
from trainer.records import Experts
from trainer.settings import Settings
from trainer.transfer import write_weights

# Rounding: a log-probability may come out above 0 by so much.
SLACK = 1e-3


class HttpConfig(Settings):
    """Where the server is, and how it is used."""

    # Without `/v1`: `http://localhost:8000`.
    url: str
    # As the server calls it.
    model: str
    # Weights go through it: this process writes, the server reads.
    weights_folder: Path
    # Requests that are open at the same time.
    parallel: PositiveInt = 64
    patience: Patience = Patience()

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError(f"{url!r} is no URL, expected one such as http://localhost:8000")
        return url.rstrip("/")


class HttpEngine:
    """An `Engine` behind HTTP: it answers with the weights of its version, or not at all."""

    def __init__(self, config: HttpConfig, *, version: int = 0) -> None:
        self.version = version
        self._config = config

    def generate(self, requests: Sequence[Request]) -> list[Generated]:
        """Answer each request, in order.

        Raises:
            ValueError: a request is empty, or has numbers out of range.
            EngineError: the server failed each time, refused, has weights of another version, or
                answered what cannot be used.
        """
        check_requests(requests)
        pool = ThreadPoolExecutor(self._config.parallel)
        try:
            return list(pool.map(self._complete, requests))
        finally:
            pool.shutdown(cancel_futures=True)

    def sync(self, weights: Mapping[str, Tensor], *, version: int) -> None:
        """Have the server load weights, and see that it serves them.

        Raises:
            EngineError: it does not; which weights it serves is not known.
        """
        parent = self._config.weights_folder.absolute()
        parent.mkdir(parents=True, exist_ok=True)
        # Several ranks may have the same server load the same weights.
        with tempfile.TemporaryDirectory(prefix=f"version-{version}-", dir=parent) as own:
            folder = Path(own) / "weights"
            stamp = {"sha256": write_weights(folder, weights), "weight_version": str(version)}
            answer = self._update({"folder": str(folder), **stamp})
        if (found := {key: answer.get(key) for key in stamp}) != stamp:
            raise EngineError(f"{self._config.url}/update_weights: {found}, expected {stamp}")
        self.version = version

    def _update(self, info: dict[str, str]) -> dict[str, object]:
        """Have the server load weights between two batches, and go on whatever comes of it."""
        try:
            self._ask("/pause?mode=keep", {})
            answer = self._ask("/update_weights", {"update_info": info})
        except EngineError:
            with suppress(EngineError):  # the first failure is the one to tell of
                self._ask("/resume", {})
            raise
        self._ask("/resume", {})
        return answer

    def close(self) -> None:
        """Do nothing: no connection outlives its request."""

    def _complete(self, request: Request) -> Generated:
        path, version = "/v1/completions", self.version
        answer = self._ask(path, _body(request, model=self._config.model))
        try:
            return _generated(answer, request, version=version)
        except ValueError as error:
            raise EngineError(f"{self._config.url}{path}: {error}") from error

    def _ask(self, path: str, body: dict[str, object]) -> dict[str, object]:
        return ask(f"{self._config.url}{path}", body, patience=self._config.patience)


def _body(request: Request, *, model: str) -> dict[str, object]:
    return {
        "model": model,
        "prompt": request.ids.tolist(),
        "max_tokens": request.max_new_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop_token_ids": list(request.stop_ids),
        "ignore_eos": True,
        "logprobs": 1,
        "return_token_ids": True,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        **({"return_routed_experts": True} if request.wants_experts else {}),
    }


def _generated(answer: dict[str, object], request: Request, *, version: int) -> Generated:
    """Read an answer.

    Raises:
        ValueError: it is not what was asked for.
    """
    match answer:
        case {
            "choices": [
                {
                    "token_ids": [*ids],
                    "logprobs": {"token_logprobs": [*logprobs]},
                    "finish_reason": "stop" | "length" as reason,
                    **rest,
                }
            ],
            "metadata": {"weight_version": str(stamp)},
        }:
            _check_stamp(stamp, version)
            _check_prompt(rest.get("prompt_token_ids"), request)
            _check_numbers(ids, logprobs, request)
            _check_end(ids, reason, request)
            experts = _experts(rest.get("routed_experts"), request, num_new=len(ids))
        case _:
            raise ValueError(
                f"{show(answer)}; expected one choice with token_ids, token_logprobs and "
                "a finish_reason, and metadata.weight_version"
            )
    return Generated(
        ids=np.array(ids, np.int64),
        logprobs=np.array(logprobs, np.float32),
        stop="end" if reason == "stop" else "length",
        version=version,
        experts=experts,
    )


def _experts(text: object, request: Request, *, num_new: int) -> Experts | None:
    """Read which experts were chosen, where this was asked for."""
    if not request.wants_experts:
        return None
    try:
        found = np.load(io.BytesIO(base64.b64decode(str(text), validate=True)))
    except (ValueError, EOFError) as error:
        raise ValueError(f"routed_experts {show(text)}, expected base64 of an array") from error
    num_tokens = len(request.ids) + num_new - 1
    match found.shape:
        case (length, _, _) if length == num_tokens and found.dtype.kind in "iu":
            return found.astype(np.int16)
    raise ValueError(
        f"routed_experts {found.dtype} of shape {found.shape}, expected whole numbers of "
        f"{num_tokens} tokens, layers and experts"
    )


def _check_stamp(stamp: str, version: int) -> None:
    if stamp != str(version):
        raise ValueError(f"sampled with weights of version {stamp}, expected {version}")


def _check_prompt(ids: object, request: Request) -> None:
    if ids is not None and ids != request.ids.tolist():
        raise ValueError(f"went on from {show(ids)}, expected the {len(request.ids)} ids sent")


def _check_numbers(ids: list[object], logprobs: list[object], request: Request) -> None:
    if not all(isinstance(it, int) and it >= 0 for it in ids):
        raise ValueError(f"token_ids {show(ids)}, expected numbers from 0 on")
    if not all(isinstance(it, int | float) and -math.inf < it <= SLACK for it in logprobs):
        raise ValueError(f"token_logprobs {show(logprobs)}, expected finite numbers up to 0")
    if len(ids) != len(logprobs) or not 1 <= len(ids) <= request.max_new_tokens:
        raise ValueError(
            f"{len(ids)} token_ids, {len(logprobs)} token_logprobs; expected as many of both, "
            f"1 to {request.max_new_tokens}"
        )


def _check_end(ids: list[object], reason: str, request: Request) -> None:
    if reason == "stop" and ids[-1] not in request.stop_ids:
        raise ValueError(f"stopped at {ids[-1]}, expected one of {request.stop_ids}")
    if reason == "length" and len(ids) < request.max_new_tokens:
        raise ValueError(f"ended at length {len(ids)}, expected {request.max_new_tokens}")
