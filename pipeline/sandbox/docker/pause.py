"""Wait for an engine that is gone, saying so once however many threads wait."""

import logging
import threading
from collections.abc import Callable

from pipeline.sandbox.docker.engine import Engine

_LOG = logging.getLogger(__name__)


class Pause:
    """What threads go through when the engine is gone."""

    def __init__(self, engine: Engine, *, say: Callable[[str], None] | None) -> None:
        self._engine = engine
        self._say = say or _LOG.warning
        # Held while somebody waits: whoever comes next finds the engine back.
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._stopped.set()

    def wait(self) -> None:
        """Return once the engine answers, or after `stop`."""
        with self._lock:
            if self._stopped.is_set() or self._engine.answers():
                return
            self._say(f"the Docker engine at {self._engine.address} is gone; waiting for it")
            if self._engine.wait_until_back(self._stopped):
                self._say(f"the Docker engine at {self._engine.address} is back; going on")
