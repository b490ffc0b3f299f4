"""What comes back of a job besides its output: a collected file, the most that it used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.sandbox.protocol import MIB, Job, Mount, Sandbox

MakeJob = Callable[..., Job]


def collecting(script: str, path: str, **fields: object) -> Job:
    return Job(command=("/bin/sh", "-c", script), collect=path, **fields)


@pytest.mark.parametrize("folder", ["/tmp", "/home/regrow", "/dev/shm"])
def test_a_file_is_brought_back(sandbox: Sandbox, folder: str):
    finished = sandbox.run(collecting(f"echo text > {folder}/file; exit 3", f"{folder}/file"))
    assert (finished.exit_code, finished.collected) == (3, b"text\n")


def test_a_large_file_is_brought_back_whole(sandbox: Sandbox, python: MakeJob):
    code = "open('/tmp/file', 'wb').write(bytes(range(256)) * 2**14); print('x' * 2**20)"
    job = python(code)
    finished = sandbox.run(Job(command=job.command, collect="/tmp/file"))
    assert finished.collected == bytes(range(256)) * 2**14
    assert len(finished.output) == 2**20 + 1


def test_a_file_of_the_tree_is_brought_back(sandbox: Sandbox, tmp_path: Path):
    (tmp_path / "file").write_text("before")
    sandbox.adopt(tmp_path)
    mount = Mount(source=tmp_path, target="/work", mode="overlay")
    finished = sandbox.run(collecting("echo after > /work/file", "/work/file", mounts=(mount,)))
    assert finished.collected == b"after\n"
    assert (tmp_path / "file").read_text() == "before"


@pytest.mark.parametrize(
    "script",
    [
        "true",
        "mkdir /tmp/file",
        "echo > /tmp/other; ln -s other /tmp/file",
        "mkfifo /tmp/file",
        "echo > /tmp/file; chmod 000 /tmp/file",
    ],
)
def test_what_is_no_file_to_read_is_not_brought_back(sandbox: Sandbox, script: str):
    finished = sandbox.run(collecting(script, "/tmp/file"))
    assert (finished.exit_code, finished.collected) == (0, None)


def test_an_empty_file_is_told_from_none(sandbox: Sandbox):
    assert sandbox.run(collecting("> /tmp/file", "/tmp/file")).collected == b""
    assert sandbox.run(collecting("> /tmp/file", "")).collected is None


def test_a_file_that_is_too_large_is_not_brought_back(sandbox: Sandbox, python: MakeJob):
    for size, collected in ((1000, bytes(1000)), (1001, None)):
        job = python(f"open('/tmp/file', 'wb').write(bytes({size}))", results_bytes=1000)
        job = Job(command=job.command, limits=job.limits, collect="/tmp/file")
        finished = sandbox.run(job)
        assert (finished.limit, finished.collected) == (None, collected)


def test_nothing_writes_to_a_file_while_it_is_collected(sandbox: Sandbox, python: MakeJob):
    code = """
import os, time
file = open("/tmp/file", "w")
if os.fork() == 0:
    os.setsid()
    while True:
        file.write("late ")
        file.flush()
time.sleep(0.2)
os.write(1, b"%d" % os.path.getsize("/tmp/file"))
"""
    job = python(code)
    job = Job(command=job.command, limits=job.limits, collect="/tmp/file")
    finished = sandbox.run(job)
    assert finished.collected is not None
    # Cut off where the writer died, not filled up while it was read.
    assert len(finished.collected) >= int(finished.output) > 0
    assert set(finished.collected.split()) == {b"late"}


def test_the_file_of_a_job_that_went_over_a_limit_is_not_asked_for(
    sandbox: Sandbox, python: MakeJob
):
    job = python("open('/tmp/file', 'w').close(); import time; time.sleep(60)", wall_s=0.5)
    finished = sandbox.run(Job(command=job.command, limits=job.limits, collect="/tmp/file"))
    assert (finished.limit, finished.collected) == ("wall", None)


def test_the_most_that_was_used_is_told(sandbox: Sandbox, python: MakeJob):
    code = """
import os, time
kept = b"x" * 50 * 2**20
time.sleep(0.5)
del kept
[os.fork() for _ in range(2)]
time.sleep(0.5)
"""
    finished = sandbox.run(python(code))
    assert finished.limit is None
    assert 50 * MIB < finished.peak_memory_bytes < 150 * MIB
    assert finished.peak_processes == 4
