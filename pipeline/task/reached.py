"""Ask a traced run which tests reach given lines, definitions or modules."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.task.traced import NOTHING, Stretch, SuiteTrace


@dataclass(frozen=True, slots=True)
class Lines:
    """What tests reach, line by line; a set of marks is a number, bit n for mark n.

    Example: `Lines(run.trace, ids=baseline.passing).tests_at("src/pkg/core.py", 10, 14)`.
    """

    trace: SuiteTrace = NOTHING
    # The tests that count, in the order of the answers.
    ids: tuple[str, ...] = ()

    def tests_at(self, path: str, first: int, last: int) -> tuple[str, ...]:
        """Return the tests that reach any line from `first` to `last`, imports aside."""
        return self._tests(
            mark for mark, it in self._stretches(path) if _overlaps(it, first=first, last=last)
        )

    def tests_of(self, path: str, qualname: str) -> tuple[str, ...]:
        """Return the tests that run code of a function or class, or of what is inside it.

        The body of a class at the top of a module runs at import, its methods in tests.
        """
        inner = f"{qualname}."
        return self._tests(
            mark
            for mark, it in self._stretches(path)
            if it.qualname == qualname or it.qualname.startswith(inner)
        )

    def tests_in(self, path: str) -> tuple[str, ...]:
        """Return the tests that run code of a module."""
        return self._tests(mark for mark, _ in self._stretches(path))

    def reached(self, path: str) -> frozenset[int]:
        """Return the lines of a file that any of the tests reaches, imports aside."""
        found = 0
        for key in self.ids:
            found |= self.trace.reached.get(key, 0)
        return self._lines(path, found)

    def reached_by(self, key: str, path: str) -> frozenset[int]:
        """Return the lines of a file that one test reaches, imports aside."""
        return self._lines(path, self.trace.reached.get(key, 0))

    def at_import(self, path: str) -> frozenset[int]:
        """Return the lines of a file that run while modules are imported."""
        return self._lines(path, self.trace.at_import)

    def at_collection(self, path: str) -> frozenset[int]:
        """Return the lines of a file that run while tests are collected, imports aside."""
        return self._lines(path, self.trace.at_collection)

    def _stretches(self, path: str) -> Iterator[tuple[int, Stretch]]:
        for module in self.trace.modules:
            if module.path == path:
                yield from module.marks()

    def _tests(self, marks: Iterator[int]) -> tuple[str, ...]:
        wanted = sum(1 << mark for mark in set(marks))
        return tuple(key for key in self.ids if self.trace.reached.get(key, 0) & wanted)

    def _lines(self, path: str, hits: int) -> frozenset[int]:
        return frozenset(
            line
            for mark, it in self._stretches(path)
            if hits >> mark & 1
            for first, last in it.lines
            for line in range(first, last + 1)
        )


def _overlaps(stretch: Stretch, *, first: int, last: int) -> bool:
    return any(begin <= last and first <= end for begin, end in stretch.lines)


NO_LINES = Lines()
