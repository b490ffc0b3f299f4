"""What a signal does within the block and after it; a signal is sent to this very process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from trainer.interrupt import stopped_first


@pytest.fixture
def seen() -> Iterator[list[str]]:
    """Return what has happened; SIGTERM is handled as SIGINT is, and tells so."""
    happened: list[str] = []

    def handle(number: int, _frame: object) -> None:
        happened.append(signal.Signals(number).name)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    yield happened
    signal.signal(signal.SIGTERM, before)


def test_a_signal_stops_first_and_is_then_handled_as_before(seen: list[str]):
    with pytest.raises(KeyboardInterrupt), stopped_first(lambda: seen.append("stop")):
        signal.raise_signal(signal.SIGTERM)
    assert seen == ["stop", "SIGTERM"]


def test_after_the_block_nothing_is_stopped(seen: list[str]):
    with suppress(KeyError), stopped_first(lambda: seen.append("stop")):
        raise KeyError
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert seen == ["SIGTERM"]


def test_a_signal_that_no_function_handles_is_left_alone(seen: list[str]):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with stopped_first(lambda: seen.append("stop")):
        signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert seen == []


def test_in_another_thread_no_handler_is_set(seen: list[str]):
    found: list[object] = []

    def work() -> None:
        with stopped_first(lambda: seen.append("stop")):
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
