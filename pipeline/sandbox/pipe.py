"""Own both ends of a pipe until each is closed."""

import os
from typing import Self


class Pipe:
    """A pipe whose ends are closed at most once each; a context manager that closes both."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self._open = {self.reader, self.writer}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(self.reader)
        self.close(self.writer)

    def close(self, end: int) -> None:
        """Close one end, unless it is closed already."""
        if end in self._open:
            self._open.remove(end)
            os.close(end)
