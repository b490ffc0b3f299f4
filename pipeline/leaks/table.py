"""Hold many keys so that a large array of others is looked up at once."""

from collections.abc import Iterable

import numpy as np

from pipeline.leaks.words import KEY_BITS, Keys

# Entries of the filter for each key, and the most: it has to stay in the processor's cache.
_SPARSENESS, _MAX_FILTER_BITS = 32, 22


class KeyTable:
    """A set of keys: a filter by their highest bits lets nearly nothing else pass, then a search.

    Its plain twin is a `frozenset`.
    """

    def __init__(self, keys: Iterable[int]) -> None:
        held = sorted(set(keys))
        self._keys: Keys = np.array([*held, 1 << KEY_BITS], dtype=np.uint64)
        size = max(len(held) * _SPARSENESS, 2)
        self._shift = np.uint64(KEY_BITS - min(size.bit_length(), _MAX_FILTER_BITS))
        self._filter = np.zeros(1 << (KEY_BITS - int(self._shift)), dtype=np.bool_)
        self._filter[self._keys[:-1] >> self._shift] = True

    def found_in(self, keys: Keys) -> set[int]:
        """Return those of some keys that are in the table."""
        passed = keys[self._filter[(keys >> self._shift).view(np.int64)]]
        if not len(passed):
            return set()
        # None is beyond the last: the array ends with a number that is no key.
        near = self._keys.searchsorted(passed)
        return set(passed[self._keys[near] == passed].tolist())
