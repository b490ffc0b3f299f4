"""End a command within seconds of Ctrl-C or SIGTERM, with nothing left running."""

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.text import Text

from pipeline.commands.say import ERR, INTERRUPTED
from pipeline.sandbox.choose import SandboxName, open_sandbox
from pipeline.sandbox.protocol import Sandbox

# What stops on its own has this long, then it is killed.
GRACE_S = 3.0
# What is killed is gone sooner.
END_S = 2.0
# Of `linux/prctl.h`.
_PR_SET_CHILD_SUBREAPER = 36
# A terminal that takes no more text does not hold up the end for longer.
SAY_S = 1.0


@contextlib.contextmanager
def stoppable_sandbox(name: SandboxName, *, message: str) -> Iterator[Sandbox]:
    """Give a sandbox that a signal stops, for the time of a block; leave nothing of it.

    Raises:
        SandboxUnavailableError: it does not work here.
    """
    sandbox = open_sandbox(name, warm=True)
    stop_on_signal(sandbox.stop, message=message)
    try:
        yield sandbox
    finally:
        sandbox.stop()


def stop_on_signal(stop: Callable[[], None], *, message: str) -> threading.Event:
    """Call `stop` at the first signal, and end the process if it is not gone soon after.

    Returns:
        Set once a signal has come.
    """
    stopped = threading.Event()

    def on_signal(_signal: int, _frame: object) -> None:
        if stopped.is_set():
            return
        stopped.set()
        timer = threading.Timer(GRACE_S, _end_by_force, (message,))
        timer.daemon = True
        timer.start()
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return stopped


def adopt_orphans() -> None:
    """Become the parent of what dead children of this process leave, from now on."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> None:
    """Kill all that this process has started, before it ends; grandchildren of the dead as well.

    A bwrap that dies at once may have a child that nothing has told to die with it.
    """
    adopt_orphans()
    deadline_s = time.monotonic() + END_S
    while (children := _living_children()) and time.monotonic() < deadline_s:
        for child in children:
            with contextlib.suppress(OSError):  # it has just ended
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def _end_by_force(message: str) -> None:
    """Kill the descendants and end the process, whatever goes wrong on the way."""
    try:
        # Downloads and installations of ours may take minutes to notice.
        end_descendants()
        # In a thread, since the interrupted one may hold the console.
        saying = threading.Thread(target=ERR.print, args=(Text(message),), daemon=True)
        saying.start()
        saying.join(SAY_S)
    finally:
        os._exit(INTERRUPTED)


def _living_children() -> list[int]:
    found: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has just ended
            found += map(int, path.read_text().split())
    return [pid for pid in found if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    """Tell whether a process still runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
