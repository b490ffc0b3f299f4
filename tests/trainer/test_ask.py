import socket
import threading

import pytest

from tests.trainer.played import Answer, played
from trainer.ask import KEY_VARIABLE, Patience, ask
from trainer.engine import EngineError

PATIENCE = Patience(max_tries=3, pause_s=0)


def test_a_server_that_is_busy_is_asked_again() -> None:
    def answer(number: int) -> Answer:
        return (200, {"said": 1}) if number == 2 else (503, {"error": {"message": "loading"}})

    with played(answer) as seen:
        assert ask(f"{seen.url}/x", {"a": 1}, patience=PATIENCE) == {"said": 1}
        assert [body for _, _, body in seen.asked] == [{"a": 1}] * 3


def test_a_server_that_stays_busy_is_given_up_with_its_reason() -> None:
    with played(lambda _: (503, {"error": {"message": "loading"}})) as seen:
        with pytest.raises(EngineError) as caught:
            ask(f"{seen.url}/x", {}, patience=PATIENCE)
        assert len(seen.asked) == 3
    assert str(caught.value) == (
        f"{seen.url}/x: status 503: loading; expected status 200, asked 3 times"
    )


def test_a_refusal_is_final() -> None:
    with played(lambda _: (404, {"error": {"message": "no such model"}})) as seen:
        with pytest.raises(EngineError, match="status 404: no such model; expected status 200"):
            ask(f"{seen.url}/x", {}, patience=PATIENCE)
        assert len(seen.asked) == 1


@pytest.mark.parametrize("data", [b"<html>proxy</html>", b"[1]", b'{"choices": [', b""])
def test_what_is_no_object_is_final(data: bytes) -> None:
    with played(lambda _: (200, data)) as seen:
        with pytest.raises(EngineError, match="expected a JSON object"):
            ask(f"{seen.url}/x", {}, patience=PATIENCE)
        assert len(seen.asked) == 1


def test_a_server_that_is_not_there_is_given_up() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match=rf"http://127\.0\.0\.1:{port}/x: .*asked 3 times"):
        ask(f"http://127.0.0.1:{port}/x", {}, patience=PATIENCE)


def test_a_reason_that_breaks_off_is_no_other_failure_than_its_status() -> None:
    reply = b"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
        with pytest.raises(EngineError, match=r"status 503: Busy; .*asked 2 times"):
            ask(url, {}, patience=Patience(max_tries=2, pause_s=0))


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/x"
        with pytest.raises(EngineError, match=r"timed out; .*asked 2 times"):
            ask(url, {}, patience=Patience(timeout_s=0.1, max_tries=2, pause_s=0))


def test_the_key_is_sent_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "letmein")
    with played(lambda _: (200, {})) as seen:
        ask(f"{seen.url}/x", {}, patience=PATIENCE)
    assert seen.asked[0][1]["Authorization"] == "Bearer letmein"
