"""Have a signal stop what others wait for, before it does what it always did."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_first(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGINT or SIGTERM within the block, and then what handles it.

    Without, a handler that raises would have the block wait for threads whose jobs take minutes.
    A signal that no function handles is left alone; so are all in other threads than the main one,
    which may set no handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {it: found for it in _SIGNALS if callable(found := signal.getsignal(it))}

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()
        handlers[signal.Signals(number)](number, frame)

    for number in handlers:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
