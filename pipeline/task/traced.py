"""What a traced run saw: stretches of lines, each with a mark, and which test reached which."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

StretchKind = Literal["module", "class", "function", "rest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Lines that are reached together; see `inside/trace_marks.py` for where one ends.

    Example: `Stretch(kind="function", qualname="Box.size", line=7, lines=((8, 9), (12, 12)))`.
    """

    # What it begins, if it does: the body of a module, class or function.
    kind: StretchKind
    # Of the innermost function or class that it is in; empty for the module itself.
    qualname: str
    # Of the `def` or `class` whose body it begins; 1 for a module, 0 for the rest.
    line: int
    # First and last line of each part, in order.
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedModule:
    """The stretches of one file."""

    # Relative to the tree.
    path: str
    # Mark of the first stretch; the others follow.
    first: int
    stretches: tuple[Stretch, ...]

    def marks(self) -> Iterator[tuple[int, Stretch]]:
        """Yield each stretch after its mark."""
        return enumerate(self.stretches, self.first)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTrace:
    """Which stretches ran when; a set of marks is a number, bit n for mark n."""

    # A file that other processes saw otherwise, such as one without its asserts, is there twice.
    modules: tuple[MarkedModule, ...]
    # Ran while modules were imported, by the runner, a test or a process that one started.
    at_import: int
    # Ran while tests were collected, imports aside.
    at_collection: int
    # By test id: ran during the test, or in the set-up of a wider fixture that it uses.
    reached: Mapping[str, int]


NOTHING = SuiteTrace(modules=(), at_import=0, at_collection=0, reached={})


def each_mark(marks: int) -> Iterator[int]:
    """Yield the marks of a set in order."""
    digits = f"{marks:b}"[::-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def read_module(line: Mapping[str, Any]) -> MarkedModule:
    """Return what `inside/trace_plugin.py` reports of a module."""
    return MarkedModule(
        path=line["path"],
        first=line["first"],
        stretches=tuple(map(_stretch, line["stretches"])),
    )


def write_module(module: MarkedModule) -> dict[str, Any]:
    """Return what `read_module` reads."""
    return {
        "path": module.path,
        "first": module.first,
        "stretches": [
            [it.kind, it.qualname, it.line, [line for pair in it.lines for line in pair]]
            for it in module.stretches
        ],
    }


def _stretch(fields: Sequence[Any]) -> Stretch:
    kind, qualname, line, lines = fields
    pairs = tuple(zip(lines[::2], lines[1::2], strict=False))
    return Stretch(kind=kind, qualname=qualname, line=line, lines=pairs)
