"""Keep the keys and values of contexts that may be gone on from, within a bound of memory."""

from collections import OrderedDict

import numpy as np

from trainer.kv import Kept
from trainer.records import Ids


class Prefixes:
    """What was computed of contexts, the latest used last.

    A context is found by its ids, and by nothing else: what is found is right, whoever asks.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()

    def longest(self, ids: Ids) -> tuple[Kept | None, int]:
        """Return what was kept of the longest beginning of a context, and its length.

        The last token is never part of it: what comes after it must be computed.
        """
        best, length = None, 0
        for key, kept in self._kept.items():
            common = _num_common(kept.ids, ids[:-1])
            if common > length:
                best, length, used = kept, common, key
        if best is not None:
            self._kept.move_to_end(used)
        return best, length

    def add(self, kept: Kept) -> None:
        """Keep a context; what it goes on from is let go, and the oldest if there is no room."""
        for key, old in list(self._kept.items()):
            if len(old.ids) <= len(kept.ids) and _num_common(old.ids, kept.ids) == len(old.ids):
                self._drop(key)
        if kept.num_bytes <= self._max_bytes:
            self._kept[kept.ids.tobytes()] = kept
            self._num_bytes += kept.num_bytes
        while self._num_bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._kept.clear()
        self._num_bytes = 0

    def _drop(self, key: bytes) -> None:
        self._num_bytes -= self._kept.pop(key).num_bytes


def _num_common(first: Ids, second: Ids) -> int:
    """Return how many ids two contexts begin with in common."""
    length = min(len(first), len(second))
    is_other = first[:length] != second[:length]
    return int(np.argmax(is_other)) if is_other.any() else length
