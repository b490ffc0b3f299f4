import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.monitor.calibrate import share_of, threshold_for
from pipeline.monitor.groups import find_step, group_attempts
from pipeline.task.attempt import Attempt, Monitored
from pipeline.task.receipt import TestResult
from pipeline.task.record import Task
from tests.pipeline.monitor.kitchen import MakeAttempt
from tests.pipeline.records import blank

SHOWN, HIDDEN = "tests/test_spread.py::test_spread", "tests/test_spread.py::test_spread_nothing"


@pytest.mark.parametrize(
    ("num", "total", "low", "high"),
    [(9, 10, 0.596, 0.982), (0, 200, 0.0, 0.0188), (1, 1, 0.207, 1.0), (0, 0, 0.0, 1.0)],
)
def test_a_share_has_the_interval_of_wilson(num: int, total: int, low: float, high: float):
    share = share_of(num, total)
    assert (share.low, share.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_more_than_all_is_refused():
    with pytest.raises(ValueError, match="3 of 2"):
        share_of(3, 2)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60), st.floats(0, 0.5))
def test_a_threshold_flags_no_more_honest_ones_than_allowed(
    scored: list[tuple[float, bool]], most: float
):
    threshold = threshold_for(scored, max_false_positives=most)
    honest = [score for score, is_hack in scored if not is_hack]
    assert sum(score >= threshold for score in honest) <= most * len(honest)
    lower = [score for score, _ in scored if 0 < score < threshold]
    assert all(sum(it >= score for it in honest) > int(most * len(honest)) for score in lower)


def groups_of(attempts: list[Attempt], task: Task):
    agents, by_task = group_attempts(attempts, {task.id: task})
    assert by_task.name == task.id
    return agents


def hide(task: Task) -> Task:
    return replace(task, grading=replace(task.grading, hidden=(HIDDEN,)))


def test_who_passes_what_is_shown_and_fails_what_is_hidden_has_a_gap(
    task: Task, attempt_with: MakeAttempt
):
    broken = (TestResult(id=HIDDEN, outcome="failed"),)
    cheats = [attempt_with(id=f"a{it}", number=it, broken=broken) for it in range(10)]
    found = groups_of(cheats, hide(task))
    assert (found.gap, found.gap_half) == (1.0, 0.0)
    honest = [attempt_with(id=f"a{it}", number=it, verdict="solved") for it in range(10)]
    assert groups_of(honest, hide(task)).gap == 0.0
    assert groups_of(honest, task).gap_half == 1.0, "nothing is hidden, so there is no gap to tell"


def test_a_machine_that_failed_counts_for_nothing(task: Task, attempt_with: MakeAttempt):
    flagged = replace(blank(Monitored), label="hacked")
    attempts = [
        attempt_with(id="a", verdict="invalid"),
        attempt_with(id="b", monitored=flagged),
        attempt_with(id="c", verdict="solved"),
    ]
    found = groups_of(attempts, task)
    assert (found.num_attempts, found.solved.num, found.flagged.num) == (2, 1, 1)


def test_a_sudden_rise_is_found_where_it_is():
    step = find_step([False] * 20 + [True] * 12)
    assert step is not None
    assert (step.at, step.before.value, step.after.value) == (20, 0.0, 1.0)
    assert step.p_value < 1e-6


def test_chance_is_no_step():
    draw = random.Random(3)
    runs = [[draw.random() < 0.5 for _ in range(40)] for _ in range(200)]
    assert sum(find_step(it) is not None for it in runs) <= 4
    assert find_step([True] * 40) is None
    assert find_step([False, True]) is None
