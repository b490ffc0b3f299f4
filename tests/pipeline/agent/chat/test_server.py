"""Talking to a server: patience where it helps, one clear line where it does not."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from pipeline.agent.chat import server as http
from pipeline.agent.chat.server import (
    OversizedError,
    Pace,
    RefusedError,
    Server,
    ServerError,
    check_url,
    complete,
)
from tests.pipeline.model_server import Played, hangs, model_server, raw, refuses, says, status


@pytest.fixture
def played() -> Iterator[Played]:
    with model_server() as found:
        yield found


def server_at(url: str, **more: object) -> Server:
    quick = {"timeout_s": 5.0, "pause_s": 0.01, "max_pause_s": 0.05, "max_tries": 3, **more}
    return Server(url=url, model="coder-1", **quick)


def asked(played: Played, **more: object) -> object:
    server = server_at(played.url, **more)
    return complete(server, {"messages": []}, read=lambda it: it["choices"])


def test_the_key_of_the_environment_goes_along(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGROW_KEY", "s3cret")
    played.script = [says("hi")]
    asked(played)
    assert played.headers[0]["Authorization"] == "Bearer s3cret"
    assert played.asked[0]["model"] == "coder-1"


def test_a_wrong_key_is_told_at_once_with_where_it_is_taken_from(played: Played) -> None:
    played.script = [refuses(401, "bad key")] * 3
    with pytest.raises(
        RefusedError, match=r"status 401: bad key; expected its key in .*REGROW_KEY"
    ):
        asked(played)
    assert len(played.asked) == 1


def test_a_key_does_not_follow_a_redirect(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGROW_KEY", "s3cret")
    with model_server() as other:
        played.script = [status(302, Location=f"{other.url}/chat/completions")]
        with pytest.raises(RefusedError, match="status 302"):
            asked(played)
        assert other.headers == []


def test_a_pause_that_is_no_number_is_none(played: Played) -> None:
    played.script = [status(429, Retry_After="\u00b2"), says("hi")]
    assert asked(played)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_is_busy_is_asked_again(played: Played, code: int) -> None:
    played.script = [status(code), status(code, Retry_After="1"), says("hi")]
    assert asked(played)
    assert len(played.asked) == 3


def test_what_is_no_answer_is_asked_for_again_and_then_told(played: Played) -> None:
    page = b"<html>busy</html>"
    played.script = [
        lambda it: raw(it, 200, page, Content_Type="text/html"),
        lambda it: raw(it, 200, b'{"choices": ['),
        lambda it: raw(it, 200, b"[]"),
    ]
    with pytest.raises(ServerError, match=r"no JSON object: b'\[\]'; expected an answer, asked 3"):
        asked(played)


def test_an_answer_without_end_and_one_that_never_comes_are_given_up(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 2**20)
    huge = json.dumps({"choices": "x" * 10_000_000}).encode()
    played.script = [lambda it: raw(it, 200, huge)]
    with pytest.raises(OversizedError, match="an answer of more than 1048576 bytes"):
        asked(played, max_tries=1)
    played.script = [hangs(1.0)]
    with pytest.raises(ServerError, match="TimeoutError"):
        asked(played, max_tries=1, timeout_s=0.2)


def test_nobody_there_is_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ServerError, match=r"^http://127.0.0.1:\d+/v1: URLError.*refused"):
        complete(server_at(url), {}, read=lambda it: it)


def test_what_is_no_address_is_refused() -> None:
    for url in ("localhost:8000", "ftp://host/v1", "http://"):
        with pytest.raises(ValueError, match="is no URL"):
            check_url(url)


def test_requests_are_kept_apart() -> None:
    pace = Pace(per_minute=60 * 50)
    began_s = time.monotonic()
    for _ in range(6):
        pace.wait()
    # The first goes at once, each more a fiftieth of a second after the one before.
    assert time.monotonic() - began_s >= 5 / 50
