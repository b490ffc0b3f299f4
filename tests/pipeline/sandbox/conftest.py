"""The back ends under test, and jobs in Python for them; every test here is a promise of each."""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from pipeline.sandbox.choose import SandboxName, open_sandbox
from pipeline.sandbox.docker.sandbox import Docker, open_docker
from pipeline.sandbox.protocol import Job, Limits, Mount, Sandbox, SandboxUnavailableError


def unavailable(why: str) -> NoReturn:
    """Fail where containers must be tested; elsewhere skip, so that nobody can overlook it."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(f"NOT TESTED HERE: {why}")


@functools.cache
def reason_against(name: SandboxName) -> str:
    """Return why a back end does not work on this machine; nothing when it does."""
    try:
        open_sandbox(name).stop()
    except SandboxUnavailableError as error:
        return str(error)
    return ""


@pytest.fixture(params=["bubblewrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if why := reason_against(request.param):
        unavailable(why)
    # What has been tried once need not be tried again for each test.
    opened = open_docker() if request.param == "docker" else open_sandbox(request.param)
    yield opened
    if isinstance(opened, Docker):
        assert opened.containers() == []
    opened.stop()


@pytest.fixture
def python() -> Callable[..., Job]:
    """Return a maker of jobs that run Python code, within half a minute unless told otherwise."""

    def make(
        code: str,
        *arguments: str,
        mounts: tuple[Mount, ...] = (),
        workdir: str = "/",
        stdin: bytes = b"",
        **limits: float,
    ) -> Job:
        interpreter = f"{sys.base_prefix}/bin/python3"
        return Job(
            command=(interpreter, "-c", code, *arguments),
            mounts=mounts,
            workdir=workdir,
            stdin=stdin,
            limits=Limits(**{"wall_s": 30, **limits}),
        )

    return make
