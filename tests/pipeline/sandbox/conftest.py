"""The back ends under test, and jobs in Python for them; every test here is a promise of each."""

import sys
from collections.abc import Callable, Iterator

import pytest

from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Job, Limits, Mount, Sandbox, SandboxUnavailableError


@pytest.fixture(params=["bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox(request.param)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    yield opened
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
