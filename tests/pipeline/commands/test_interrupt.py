"""A signal ends a command, whatever of it hangs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.commands.interrupt import GRACE_S

HANGING = """
import subprocess, sys, time
from pipeline.commands.interrupt import stop_on_signal
from pipeline.commands.say import ERR

def stop():
    if "hold" in sys.argv:
        ERR._lock.acquire()
    time.sleep(60)

stop_on_signal(stop, message="stopped; nothing is kept")
child = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo $$ $!; wait"])
time.sleep(60)
"""
ENDING = """
import subprocess
from pipeline.commands.interrupt import end_descendants

child = subprocess.Popen(
    ["/bin/sh", "-c", "sleep 60 & echo $$ $!; wait"], stdout=subprocess.PIPE, text=True
)
print(child.stdout.readline())
end_descendants()
print(child.poll())
"""


@pytest.mark.parametrize("case", ["someone reads", "nobody reads", "hold the console"])
def test_what_does_not_stop_on_its_own_is_ended_with_its_descendants(case: str):
    command = [sys.executable, "-c", HANGING, *case.split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        descendants = [int(it) for it in process.stdout.readline().split()]
        if case == "nobody reads":
            process.stderr.close()
        process.send_signal(signal.SIGINT)
        began_s = time.monotonic()
        try:
            assert process.wait(GRACE_S + 3) == 130
        finally:
            process.kill()
        assert time.monotonic() - began_s >= GRACE_S
        if case == "someone reads":
            assert process.stderr.read() == "stopped; nothing is kept\n"
    assert len(descendants) == 2
    assert all(map(_is_gone, descendants))


def test_descendants_end_while_the_process_goes_on():
    done = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, check=True, timeout=30
    )
    *descendants, status = [int(it) for it in done.stdout.split()]
    assert status == -signal.SIGKILL
    assert len(descendants) == 2
    assert all(map(_is_gone, descendants))


def _is_gone(pid: int) -> bool:
    """Tell whether a process has ended, once the kernel has cleaned up."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False
