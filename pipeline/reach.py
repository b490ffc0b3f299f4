"""Ask a Trace which tests reach some code, fast enough for thousands of candidates."""

from collections.abc import Iterable, Sequence

from pipeline.language.python.symbols import Definition
from pipeline.trace import Trace

# A set of baseline tests: bit i is the i-th id.
Bits = int


class Reach:
    """Which tests of a Baseline enter which definitions.

    Example: `Reach(trace, order=baseline.passing).bits_of(definition)`.
    """

    def __init__(self, trace: Trace, *, order: Sequence[str]) -> None:
        self.order = tuple(order)
        self._place = {key: number for number, key in enumerate(self.order)}
        self._entered = {name: self.bits_named(keys) for name, keys in trace.tests.items()}
        self._early = trace.early
        self._lines = trace.lines
        self._names = {path: sorted(names) for path, names in trace.names.items()}
        self._bits: dict[tuple[str, str], Bits] = {}
        self._at: dict[tuple[str, int, int], Bits] = {}
        # The tests in each file, class and function, by id without the rest.
        self._inside_of: dict[str, Bits] = {}
        for number, key in enumerate(self.order):
            parts = key.split("[")[0].split(" #")[0].split("::")
            for depth in range(1, len(parts) + 1):
                name = "::".join(parts[:depth])
                self._inside_of[name] = self._inside_of.get(name, 0) | 1 << number

    def groups(self) -> list[Bits]:
        """Return the tests of each test file, class and function."""
        return list(self._inside_of.values())

    def bits_of(self, definition: Definition) -> Bits:
        """Return the tests that enter a definition, or a function inside it, or stand in it."""
        key = (definition.symbol.path, definition.symbol.qualname)
        if key not in self._bits:
            self._bits[key] = self._inside_of.get(_id_of(definition), 0)
            for name in self._inside(definition):
                self._bits[key] |= self._entered.get(name, 0)
        return self._bits[key]

    def bits_at(self, path: str, first: int, last: int) -> Bits:
        """Return the tests that run any line from `first` to `last`; all, when nobody knows."""
        key = (path, first, last)
        if key not in self._at:
            is_known = any(it.path == path for it in self._lines.trace.modules)
            ids = self._lines.tests_at(*key) if is_known else self.order
            self._at[key] = self.bits_named(ids)
        return self._at[key]

    def has_tests(self, definition: Definition) -> bool:
        """Tell whether tests stand in a definition."""
        return _id_of(definition) in self._inside_of

    def union_of(self, definitions: Iterable[Definition]) -> Bits:
        """Return the tests that enter any of some definitions."""
        found = 0
        for definition in definitions:
            found |= self.bits_of(definition)
        return found

    def is_early(self, definition: Definition) -> bool:
        """Tell whether something of a definition runs at import or collection."""
        return any(name in self._early for name in self._inside(definition))

    def bits_named(self, keys: Iterable[str]) -> Bits:
        """Return some tests of the Baseline, given by id."""
        return sum(1 << self._place[key] for key in set(keys))

    def share(self, bits: Bits) -> float:
        """Return how much of the Baseline some tests are."""
        return bits.bit_count() / max(len(self.order), 1)

    def ids(self, bits: Bits) -> tuple[str, ...]:
        """Return some tests by id, in order of the Baseline."""
        return tuple(key for number, key in enumerate(self.order) if bits >> number & 1)

    def num_entered(self, bits: Bits) -> int:
        """Count the functions that any of some tests enters."""
        return sum(1 for entered in self._entered.values() if entered & bits)

    def _inside(self, definition: Definition) -> list[tuple[str, str]]:
        symbol = definition.symbol
        inner = f"{symbol.qualname}."
        return [
            (symbol.path, name)
            for name in self._names.get(symbol.path, ())
            if name == symbol.qualname or name.startswith(inner)
        ]


def _id_of(definition: Definition) -> str:
    """Return what the ids of tests begin with that stand in a definition."""
    return f"{definition.symbol.path}::{definition.symbol.qualname.replace('.', '::')}"
