"""Order names by how near they are to a written one."""

from collections.abc import Iterable

# Longer names are compared by their beginning.
MAX_COMPARED = 80


def nearest(written: str, names: Iterable[str], *, limit: int) -> tuple[str, ...]:
    """Return at most `limit` names, the nearest by edit distance first; ties in order of name."""
    return tuple(sorted(set(names), key=lambda name: (distance(written, name), name))[:limit])


def distance(one: str, other: str) -> int:
    """Return how many letters to add, drop or change between two texts (Levenshtein, 1966)."""
    one, other = one[:MAX_COMPARED], other[:MAX_COMPARED]
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for place, wanted in enumerate(other, 1):
            changed = before[place - 1] + (letter != wanted)
            row.append(min(before[place] + 1, row[-1] + 1, changed))
    return row[-1]
