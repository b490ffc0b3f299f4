"""However a driver ends, nothing of it stays: no container, no mount, no temporary folder."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from docker.errors import APIError

from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.reaper import reap
from pipeline.sandbox.docker.sandbox import open_docker

ROOT = Path(__file__).parents[4]
# As the commands do it: jobs in threads, signals in the main one.
DRIVER = """
import threading
from contextlib import suppress
from pathlib import Path
from pipeline.commands.interrupt import stop_on_signal
from pipeline.sandbox.docker.sandbox import open_docker
from pipeline.sandbox.protocol import Job, Mount, SandboxStoppedError
box = open_docker()
stop_on_signal(box.stop, message="stopped")
mount = Mount(source=Path.cwd(), target="/work", mode="write")
def work():
    with suppress(SandboxStoppedError):
        box.run(Job(command=("/bin/sleep", "61"), mounts=(mount,), workdir="/work"))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def containers_of(engine: Engine, pid: int) -> list[str]:
    found = engine.api.containers(all=True, filters={"label": f"regrow.pid={pid}"})
    return [it["Id"] for it in found]


def mounts_of(engine: Engine, keys: list[str]) -> list[str]:
    """Return where the engine has the file systems of containers."""
    return [engine.api.inspect_container(it)["GraphDriver"]["Data"]["MergedDir"] for it in keys]


def wait_until_two_run(engine: Engine, driver: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + 60
    while sum(is_running(engine, it) for it in containers_of(engine, driver.pid)) < 2:
        assert driver.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def is_running(engine: Engine, key: str) -> bool:
    """Tell whether a container is there and has a job; drivers of other tests may remove it."""
    with suppress(APIError):
        processes = engine.api.top(key)["Processes"] or ()
        return any("sleep" in line[-1] for line in processes)
    return False


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_driver_that_is_ended_leaves_nothing(engine: Engine, tmp_path: Path, name: str):
    temporary, tree = tmp_path / "temporary", tmp_path / "tree"
    temporary.mkdir()
    tree.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", DRIVER], cwd=tree, env=environment) as driver:
        wait_until_two_run(engine, driver)
        mounts = mounts_of(engine, containers_of(engine, driver.pid))
        driver.send_signal(signal.Signals[name])
    # What a killed driver could not do itself the next one does when it starts.
    if name == "SIGKILL":
        open_docker().stop()
    assert containers_of(engine, driver.pid) == []
    mounted = Path("/proc/self/mountinfo").read_text()
    assert len(mounts) == 2
    assert not [it for it in mounts if it in mounted]
    kept = {f"regrow-docker-{os.getuid()}"}
    assert {it.name for it in temporary.iterdir()} <= kept


def test_containers_of_a_killed_driver_end_without_anybodys_help(engine: Engine, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", DRIVER], cwd=tmp_path, env=environment) as driver:
        wait_until_two_run(engine, driver)
        driver.send_signal(signal.SIGKILL)
    left = containers_of(engine, driver.pid)
    deadline_s = time.monotonic() + 30
    while any(is_running(engine, it) for it in left) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert not any(is_running(engine, it) for it in left)
    reap(engine)
    assert containers_of(engine, driver.pid) == []
