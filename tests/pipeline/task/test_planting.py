"""Which twins a run plants: always some of the tests that a solver has not seen."""

from pipeline.task.planting import MAX_SENTINELS, draw_twins
from pipeline.task.record import Grading, Sentinel
from pipeline.task.verdict import ALL

PATH = "tests/test_a.py"
NAMES = [f"test_{letter}" for letter in "abcdefghijkl"]
FILES = {PATH: "".join(f"def {name}(): assert f() == 1\n" for name in NAMES).encode()}
GRADING = Grading(
    plugins=(),
    alarms=(),
    hidden=(f"{PATH}::test_d[1]",),
    shortened=(f"{PATH}::test_f",),
    sentinels=tuple(Sentinel(test=f"{PATH}::{it}", number=0, kind="equality") for it in NAMES),
    clones=(f"{PATH}::test_a",),
)


def test_each_run_has_a_twin_of_each_test_that_a_solver_was_not_shown() -> None:
    for _ in range(20):
        twins = draw_twins(GRADING, FILES, defences=ALL).twins
        tests = [it.test for it in twins if it.sentinel is not None]
        assert {f"{PATH}::test_d", f"{PATH}::test_f"} <= set(tests)
        assert len(set(tests)) == MAX_SENTINELS


def test_in_some_runs_a_test_comes_before_its_copies_and_in_others_after() -> None:
    """Twenty runs draw the same order with a chance of one in half a million."""
    seen = set()
    for _ in range(20):
        space: dict[str, object] = {}
        exec(draw_twins(GRADING, FILES, defences=ALL).files[PATH], space)
        names = [name for name in space if name.startswith("test_")]
        first_copy = next(number for number, name in enumerate(names) if name not in NAMES)
        seen.add(names.index("test_d") < first_copy)
    assert seen == {True, False}
