"""Code that exists twice: a compiled twin, a fallback."""

from tests.pipeline.awkward.conftest import FarmFor, targets

# Tests are run with either twin, as markupsafe's are; the compiled one is the interpreter's own.
BOTH = {
    "pytest.ini": "[pytest]\ntestpaths = tests\n",
    "heaps/__init__.py": '''\
"""Heaps."""

try:
    from _heapq import heapify, heappop, heappush
except ImportError:
    from heaps._native import heapify, heappop, heappush

__all__ = ["heapify", "heappop", "heappush", "largest", "smallest"]


def smallest(num, items):
    """Return the smallest items."""
    ranked = sorted(items)
    chosen = ranked[:num]
    return chosen


def largest(num, items):
    """Return the largest items."""
    ranked = sorted(items, reverse=True)
    chosen = ranked[:num]
    return chosen
''',
    "heaps/_native.py": '''\
"""Heaps in Python."""


def heapify(heap):
    """Put a list in order."""
    ordered = sorted(heap)
    heap[:] = ordered


def heappush(heap, item):
    """Add an item."""
    heap.append(item)
    ordered = sorted(heap)
    heap[:] = ordered


def heappop(heap):
    """Take the smallest item."""
    if not heap:
        raise IndexError("pop from an empty heap")
    return heap.pop(0)
''',
    "heaps/search.py": '''\
"""Search, as in the standard library: what is compiled replaces all of it at the end."""


def bisect_right(items, value):
    """Return where a value goes."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if value < items[middle] else (middle + 1, high)
    return low


try:
    from _bisect import *
except ImportError:
    pass
''',
    "tests/test_search.py": """\
from heaps.search import bisect_right


def test_bisect():
    assert bisect_right([1, 2, 3], 2) == 2
    assert bisect_right([], 2) == 0


def test_bisect_end():
    assert bisect_right([1], 2) == 1
""",
    "tests/conftest.py": """\
import pytest

import heaps
from heaps import _native


@pytest.fixture(params=[_native, heaps], ids=["python", "compiled"])
def twin(request):
    return request.param
""",
    "tests/test_heaps.py": """\
import pytest

from heaps import largest, smallest


def test_push(twin):
    heap = [2, 3]
    twin.heappush(heap, 1)
    assert heap[0] == 1
    twin.heappush(heap, 0)
    assert heap[0] == 0


def test_pop(twin):
    heap = [1, 2]
    assert twin.heappop(heap) == 1
    assert twin.heappop(heap) == 2


def test_pop_nothing(twin):
    with pytest.raises(IndexError):
        twin.heappop([])


def test_heapify(twin):
    heap = [3, 1, 2]
    twin.heapify(heap)
    assert heap[0] == 1


def test_smallest():
    assert smallest(2, [3, 1, 2]) == [1, 2]
    assert smallest(0, [3, 1, 2]) == []


def test_largest():
    assert largest(2, [3, 1, 2]) == [3, 2]
    assert largest(0, [3, 1, 2]) == []


def test_largest_of_few():
    assert largest(2, [1]) == [1]
""",
}
# The same twice in Python, as where the first is an optional extra.
FALLBACK = {
    "pytest.ini": "[pytest]\ntestpaths = tests\n",
    "waves/__init__.py": '''\
"""Waves."""

try:
    from waves._fast import height, length
except ImportError:
    from waves._slow import height, length


def calm(values):
    """Tell whether there is no wave."""
    first = values[0]
    others = values[1:]
    return all(value == first for value in others)
''',
    **{
        f"waves/_{kind}.py": '''\
"""Waves, one way to measure them."""


def height(values):
    """Return how high a wave is."""
    low = min(values)
    high = max(values)
    return high - low


def length(values):
    """Return how long a wave is."""
    first, *others = values
    rest = len(others)
    return rest + (first is not None)
'''
        for kind in ("fast", "slow")
    },
    "tests/test_waves.py": """\
import pytest

from waves import calm, height, length

slow = pytest.importorskip("waves._slow")


def test_height():
    assert height([1, 4]) == 3
    assert height([1]) == 0


def test_length():
    assert length([1, 2]) == 2
    assert length([1]) == 1


def test_slow():
    assert slow.length([1, 2]) == 2
    assert slow.length([1]) == 1


def test_calm():
    assert calm([1, 1])
    assert not calm([1, 2])


def test_calm_alone():
    assert calm([1])


def test_slow_height():
    assert slow.height
""",
}


def test_what_a_compiled_twin_hides_is_no_candidate_and_what_it_does_not_is(farm_for: FarmFor):
    farm = farm_for(BOTH)
    assert farm.reject("heaps.search.bisect_right").reason == "no_test_reaches_it"
    task = farm.right_task("heaps._native.heappop")
    assert targets(task) == {
        "tests/test_heaps.py::test_pop[python]": "failed",
        "tests/test_heaps.py::test_pop_nothing[python]": "failed",
    }
    assert "tests/test_heaps.py::test_pop[compiled]" in task.evidence.pass_to_pass


def test_code_that_has_a_fallback_is_missed_as_the_fallback_does_not_step_in(farm_for: FarmFor):
    task = farm_for(FALLBACK).right_task("waves._fast.height")
    assert targets(task) == {"tests/test_waves.py::test_height": "failed"}
    assert "tests/test_waves.py::test_slow_height" in task.evidence.pass_to_pass
