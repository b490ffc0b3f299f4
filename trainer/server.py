"""Serve a model folder over HTTP, in the dialect of `trainer.serve`: `python -m trainer.server`.

It is the reference of the dialect, and small enough to be read. A batch is finished before the next
begins: `/pause?mode=keep` keeps what waits, and no answer mixes two versions of the weights. There
is no text, in or out, and no distribution other than the model's own at a temperature.
"""

import base64
import io
import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qs, urlsplit

import numpy as np
import typer
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from transformers import PreTrainedModel

from trainer.engine import EngineError, Request
from trainer.generate import LocalEngine
from trainer.model import ModelConfig, load_model, weights
from trainer.records import Experts
from trainer.service import Service
from trainer.settings import Settings
from trainer.transfer import digest, read_weights


class Completion(Settings):
    """Body of `/v1/completions`."""

    model: str
    prompt: list[Annotated[int, Field(ge=0, lt=2**63)]]
    max_tokens: int
    temperature: float = 1.0
    seed: int
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: Literal[True]
    logprobs: Annotated[int, Field(ge=0, le=1)]
    return_token_ids: Literal[True]
    return_routed_experts: bool = False
    top_p: Annotated[float, Field(ge=1, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=-1, le=0)] = -1
    min_p: Annotated[float, Field(ge=0, le=0)] = 0.0
    repetition_penalty: Annotated[float, Field(ge=1, le=1)] = 1.0
    presence_penalty: Annotated[float, Field(ge=0, le=0)] = 0.0
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] = 0.0


class UpdateInfo(Settings):
    """Which weights, and where they are."""

    folder: Path
    sha256: str
    weight_version: str


class Update(Settings):
    """Body of `/update_weights`."""

    update_info: UpdateInfo


class Server(ThreadingHTTPServer):
    """A model with an address."""

    daemon_threads = True
    # All requests of a step come at once.
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], model: PreTrainedModel, *, name: str) -> None:
        super().__init__(address, _Handler)
        self._model = model
        self._name = name
        self._service = Service(LocalEngine(model))

    def answer(self, path: str, body: bytes) -> dict[str, object]:
        """Do what is asked for.

        Raises:
            LookupError: there is no such path, or model.
            ValueError: what is asked cannot be done.
        """
        parts = urlsplit(path)
        match parts.path:
            case "/v1/models":
                return {"object": "list", "data": [{"id": self._name, "object": "model"}]}
            case "/v1/completions":
                return self._complete(Completion.model_validate_json(body))
            case "/pause":
                if (mode := parse_qs(parts.query).get("mode")) != ["keep"]:
                    raise ValueError(f"mode {mode}, expected keep")
                self._service.pause()
                return {"status": "paused"}
            case "/resume":
                self._service.resume()
                return {"status": "resumed"}
            case "/update_weights":
                return self._update(Update.model_validate_json(body).update_info)
        raise LookupError(f"{parts.path}: there is no such path")

    def server_close(self) -> None:
        """Answer what was asked, and end."""
        super().server_close()
        self._service.close()

    def _complete(self, body: Completion) -> dict[str, object]:
        if body.model != self._name:
            raise LookupError(f"there is no model {body.model!r} here, only {self._name!r}")
        said = self._service.complete(
            Request(
                ids=np.array(body.prompt, np.int64),
                max_new_tokens=body.max_tokens,
                temperature=body.temperature,
                stop_ids=body.stop_token_ids,
                seed=body.seed,
                wants_experts=body.return_routed_experts,
            )
        )
        choice = {
            "index": 0,
            "text": "",
            "token_ids": said.ids.tolist(),
            "prompt_token_ids": body.prompt,
            "logprobs": {"token_logprobs": said.logprobs.tolist()},
            "finish_reason": "stop" if said.stop == "end" else "length",
            "routed_experts": None if said.experts is None else _as_base64(said.experts),
        }
        return {
            "object": "text_completion",
            "model": self._name,
            "choices": [choice],
            "metadata": {"weight_version": str(said.version)},
        }

    def _update(self, info: UpdateInfo) -> dict[str, object]:
        read = read_weights(info.folder, expected=info.sha256)
        self._service.sync(read, version=int(info.weight_version))
        return {"sha256": digest(weights(self._model)), "weight_version": info.weight_version}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        """Answer what has no body."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Answer what has a body."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def log_message(self, *_: object) -> None:
        """Say nothing: each step has hundreds of requests."""

    def _answer(self, body: bytes) -> None:
        try:
            status, answer = 200, self.server.answer(self.path, body)
        except LookupError as error:
            status, answer = 404, _error(str(error.args[0]))
        except ValidationError as error:
            status, answer = 400, _error("; ".join(map(_complaint, error.errors())))
        except (ValueError, EngineError) as error:
            status, answer = 400, _error(str(error))
        except RuntimeError as error:
            status, answer = 500, _error(str(error))
        data = json.dumps(answer).encode()
        # Who asked may be gone.
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)


def _as_base64(experts: Experts) -> str:
    data = io.BytesIO()
    np.save(data, experts)
    return base64.b64encode(data.getvalue()).decode()


def _error(message: str) -> dict[str, object]:
    return {"error": {"message": message}}


def _complaint(fault: ErrorDetails) -> str:
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, got {fault['input']!r}"


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of a model.")],
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    name: Annotated[str, typer.Option(help="What requests call the model.")] = "policy",
) -> None:
    """Serve a model until it is stopped."""
    try:
        model = load_model(ModelConfig(source=str(folder)), seed=0, copies=1)
    except (OSError, ValueError) as error:
        raise _failed(str(error)) from error
    try:
        server = Server((host, port), model, name=name)
    except OSError as error:
        raise _failed(f"{host}:{port}: {error}") from error
    with server, suppress(KeyboardInterrupt):
        typer.echo(f"{name} at http://{host}:{server.server_port}")
        server.serve_forever()


def _failed(why: str) -> typer.Exit:
    typer.echo(f"error: {why}", err=True)
    return typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
