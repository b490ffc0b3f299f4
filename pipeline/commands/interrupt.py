"""End a command within seconds of Ctrl-C or SIGTERM, with nothing left running."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from pipeline.commands.say import ERR, INTERRUPTED

# What stops on its own has this long, then it is killed.
GRACE_S = 3.0


def stop_on_signal(stop: Callable[[], None], *, message: str) -> threading.Event:
    """Call `stop` at the first signal, and end the process if it is not gone soon after.

    Returns:
        Set once a signal has come.
    """
    stopped = threading.Event()

    def end_by_force() -> None:
        # Downloads and installations of ours may take minutes to notice.
        for child in _children():
            os.kill(child, signal.SIGKILL)
        ERR.print(message, markup=False)
        os._exit(INTERRUPTED)

    def on_signal(_signal: int, _frame: object) -> None:
        if stopped.is_set():
            return
        stopped.set()
        timer = threading.Timer(GRACE_S, end_by_force)
        timer.daemon = True
        timer.start()
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return stopped


def _children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(pid) for path in tasks for pid in path.read_text().split()]
