"""A job that the kernel ends for want of memory, before anybody has looked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.sandbox import Docker, open_docker
from pipeline.sandbox.protocol import MIB, Job, Limits, Mount, Sandbox
from pipeline.sandbox.view import base_python
from pipeline.sandbox.warm import Warm

# Memory that processes share without having it: nobody sees it as theirs, the kernel counts it.
UNSEEN = """
import mmap, os, pathlib, sys, time
# The kernel is to pick a process of the job.
pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
for _ in range(12):
    if os.fork() == 0:
        shared = mmap.mmap(-1, 40 * 2**20)
        for at in range(0, len(shared), 2**20):
            shared[at : at + 2**20] = bytes(2**20)
            shared.madvise(mmap.MADV_DONTNEED, at, 2**20)
        time.sleep(60)
sys.exit(int(os.wait()[1] != 0))
"""
LIMITS = Limits(memory_bytes=64 * MIB, disk_bytes=MIB, num_processes=32, wall_s=60)


@pytest.fixture
def docker(engine: Engine) -> Iterator[Docker]:
    assert engine.answers()
    opened = open_docker()
    yield opened
    opened.stop()


@pytest.fixture(params=["fresh", "warm"])
def sandbox(docker: Docker, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "fresh":
        yield docker
        return
    with Warm(docker) as warm:
        yield warm


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "script.py").write_text(UNSEEN)
    return Job(
        command=(base_python(), "/work/script.py"),
        mounts=(Mount(source=tmp_path, target="/work", mode="overlay"),),
        variables=(("PYTHONHASHSEED", "0"),),
        preload=("json",),
        limits=LIMITS,
    )


def test_a_job_that_the_kernel_ends_for_want_of_memory_was_over_its_limit(
    sandbox: Sandbox, job: Job
):
    assert sandbox.run(job).limit == "memory"
    assert sandbox.run(Job(command=("/bin/true",))).exit_code == 0
