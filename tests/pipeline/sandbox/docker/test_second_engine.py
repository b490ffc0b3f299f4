"""Engines that go away in the middle, and engines that are far away."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.sandbox.docker.sandbox import Docker, open_docker
from pipeline.sandbox.protocol import (
    Job,
    Mount,
    SandboxStoppedError,
    SandboxUnavailableError,
)
from tests.pipeline.engines import SecondEngine

OpenDocker = Callable[[str], Docker]


@pytest.fixture
def messages() -> list[str]:
    """What the sandboxes of a test have said of their engine."""
    return []


@pytest.fixture
def open_at(monkeypatch: pytest.MonkeyPatch, messages: list[str]) -> Iterator[OpenDocker]:
    """Return an opener of sandboxes on the engine at an address."""
    opened = []

    def open_sandbox(address: str) -> Docker:
        monkeypatch.setenv("DOCKER_HOST", address)
        sandbox = open_docker(on_pause=messages.append)
        opened.append(sandbox)
        return sandbox

    yield open_sandbox
    for sandbox in opened:
        sandbox.stop()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_far_engine_sees_what_a_near_one_does(
    second_engine: SecondEngine, open_at: OpenDocker, tmp_path: Path
):
    for name in ("readable", "overlay", "kept"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    sandbox = open_at(second_engine.tcp)
    script = "cat /a/file /b/file /c/file; echo changed > /b/file; echo changed > /c/file"
    finished = sandbox.run(
        Job(
            command=("/bin/sh", "-c", script),
            mounts=(
                Mount(source=tmp_path / "readable", target="/a"),
                Mount(source=tmp_path / "overlay", target="/b", mode="overlay"),
                Mount(source=tmp_path / "kept", target="/c", mode="write"),
            ),
        )
    )
    assert (finished.output, finished.exit_code) == (b"readableoverlaykept", 0)
    assert (tmp_path / "overlay" / "file").read_text() == "overlay"
    assert (tmp_path / "kept" / "file").read_text() == "changed\n"
    assert not sandbox.engine.is_local


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_jobs_wait_for_an_engine_that_is_gone_and_lose_nothing(
    second_engine: SecondEngine,
    open_at: OpenDocker,
    messages: list[str],
    number: int,
):
    sandbox = open_at(second_engine.unix)
    jobs = [
        Job(command=("/bin/sh", "-c", f"sleep {seconds}; echo {seconds}")) for seconds in (0, 3, 4)
    ]
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(sandbox.run, job) for job in jobs]
        assert waiting[0].result().output == b"0\n"
        wait_until(lambda: len(sandbox.containers()) == 2)
        second_engine.stop(number=number)
        wait_until(lambda: len(messages) == 1)
        assert not any(it.done() for it in waiting[1:])
        second_engine.start()
        answers = [it.result(60) for it in waiting]
    assert [(it.output, it.exit_code, it.limit) for it in answers] == [
        (b"0\n", 0, None),
        (b"3\n", 0, None),
        (b"4\n", 0, None),
    ]
    assert messages == [
        f"the Docker engine at {second_engine.unix} is gone; waiting for it",
        f"the Docker engine at {second_engine.unix} is back; going on",
    ]
    assert sandbox.containers() == []


def test_who_waits_for_an_engine_can_be_stopped(
    second_engine: SecondEngine, open_at: OpenDocker, messages: list[str]
):
    sandbox = open_at(second_engine.unix)
    second_engine.stop()
    with second_engine.started_after(), ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(sandbox.run, Job(command=("/bin/true",))) for _ in range(2)]
        wait_until(lambda: len(messages) == 1)
        sandbox.stop()
        assert [type(it.exception(10)) for it in waiting] == [SandboxStoppedError] * 2


def test_a_base_image_that_is_named_and_missing_is_said_in_one_line(
    second_engine: SecondEngine, open_at: OpenDocker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("REGROW_DOCKER_BASE", "127.0.0.1:1/none:none")
    with pytest.raises(SandboxUnavailableError) as caught:
        open_at(second_engine.unix)
    message = str(caught.value)
    assert "127.0.0.1:1/none:none" in message
    assert "REGROW_DOCKER_BASE" in message
    assert "\n" not in message
