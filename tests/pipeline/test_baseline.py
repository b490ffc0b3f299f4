"""Which tests a verdict can rest on, and which suites cannot be used at all."""

from collections.abc import Callable

import pytest

from pipeline.baseline import limits_for, measure_baseline, refuse_run
from pipeline.sandbox.protocol import MIB, Limits
from pipeline.task.record import Baseline
from pipeline.task.reject import Reject
from tests.pipeline.conftest import DeskFor, MakeTree, RepoFor, RunFiles

Measure = Callable[..., Baseline | Reject]

MIXED = """
import os, time
import pytest

# 0, 1 and 2 in the three runs.
SEED = int(os.environ["PYTHONHASHSEED"])

def test_good(): pass
def test_slow(): time.sleep(0.05)
def test_failing(): assert False
def test_erring(nowhere): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_xfailed(): assert False
@pytest.mark.xfail
def test_xpassed(): pass
def test_flaky(): assert SEED == 0
def test_flaky_later(): assert SEED == 1
@pytest.mark.skipif(SEED == 1, reason="odd")
def test_skipped_at_times(): pass
@pytest.mark.parametrize("value", [f"seed {SEED}"])
def test_unstable(value): pass
@pytest.mark.parametrize("value", [time.monotonic_ns()])
def test_timed(value): pass
if SEED == 1:
    def test_seldom(): pass
"""
# In the suite's own order each is the first to be imported or the last to run.
ORDERED = """
STATE = []
def test_1_sets(): STATE.append(1)
def test_2_needs(): assert STATE == [1]
def test_3_adds(): STATE.append(3)
def test_4_counts(): assert STATE == [1, 3]
def test_5_any(): pass
"""
# Does what cheats do, as honest code does at times.
ODD = """
import sys
def caller(): return sys._getframe(1).f_code.co_name
"""
ODD_TESTS = """
from odd import caller
def test_caller(): assert caller() == "test_caller"
def test_unguarded(pytestconfig): assert not pytestconfig.getoption("xmlpath")
"""


@pytest.fixture(scope="module")
def measure(make_tree: MakeTree, repo_for: RepoFor, desk_for: DeskFor) -> Measure:
    """Return a function that measures the baseline of some files."""

    def run(files: dict[str, str], **command: object) -> Baseline | Reject:
        tree = make_tree(files)
        return measure_baseline(repo_for(tree, **command), desk=desk_for(tree, **command))

    return run


@pytest.fixture(scope="module")
def mixed(measure: Measure) -> Baseline:
    files = {"test_mixed.py": MIXED, "test_ordered.py": ORDERED, "odd.py": ODD}
    result = measure({**files, "test_odd.py": ODD_TESTS})
    assert isinstance(result, Baseline), result
    return result


@pytest.fixture(scope="module")
def reasons(mixed: Baseline) -> dict[str, str]:
    return {it.id.partition("::")[2]: it.reason for it in mixed.quarantined}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_failing", "failing"),
        ("test_erring", "failing"),
        ("test_xpassed", "xfailed"),
        ("test_skipped", "skipped"),
        ("test_xfailed", "xfailed"),
        ("test_flaky", "flaky"),
        ("test_flaky_later", "flaky"),
        ("test_skipped_at_times", "flaky"),
        ("test_unstable[…]", "unstable-id"),
        ("test_timed[…]", "unstable-id"),
        ("test_seldom", "unstable-id"),
        ("test_2_needs", "order-dependent"),
        ("test_4_counts", "order-dependent"),
        ("test_unguarded", "guarded"),
    ],
)
def test_a_test_that_does_not_always_pass_is_quarantined(
    reasons: dict[str, str], name: str, reason: str
):
    assert reasons[name] == reason


def test_an_id_that_changes_from_run_to_run_is_booked_once(reasons: dict[str, str]):
    assert [name for name in reasons if name.startswith("test_timed")] == ["test_timed[…]"]


def test_the_rest_is_the_baseline_in_order_of_collection(mixed: Baseline):
    assert mixed.passing == (
        "test_mixed.py::test_good",
        "test_mixed.py::test_slow",
        "test_odd.py::test_caller",
        "test_ordered.py::test_1_sets",
        "test_ordered.py::test_3_adds",
        "test_ordered.py::test_5_any",
    )
    assert not set(mixed.passing) & {it.id for it in mixed.quarantined}


def test_what_the_suite_itself_does_that_cheats_do_is_kept(mixed: Baseline):
    assert mixed.alarms == ("frames odd.py",)
    assert mixed.plugins == ()


def test_durations_and_cpu_times_are_measured(mixed: Baseline):
    assert mixed.num_runs == len(mixed.cpu_s) == 4
    assert len(mixed.durations_s) == len(mixed.passing)
    durations = dict(zip(mixed.passing, mixed.durations_s, strict=True))
    assert 0.05 <= durations["test_mixed.py::test_slow"] < 1
    assert all(0.05 < cpu_s < 10 for cpu_s in mixed.cpu_s)


def test_a_suite_with_a_file_that_does_not_collect_is_still_measured(measure: Measure):
    result = measure({"test_a.py": "def test(): pass", "test_b.py": "import nowhere"})
    assert isinstance(result, Baseline)
    assert result.passing == ("test_a.py::test",)


UNUSABLE = {
    "no file": ({"small.py": ""}, "no_tests", "pytest collected no test"),
    "no test": ({"test_a.py": "def helper(): pass"}, "no_tests", "pytest collected no test"),
    "red": (
        {"test_a.py": "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): 1 / 0"},
        "red",
        "1 of 3 tests pass, 0 files do not collect; test_a.py::test_b: AssertionError",
    ),
    "nothing collects": (
        {"test_a.py": "import nowhere"},
        "red",
        "0 of 0 tests pass, 1 files do not collect; test_a.py: ModuleNotFoundError: No module",
    ),
    "all skipped": (
        {"test_a.py": "import pytest\n@pytest.mark.skip\ndef test(): pass"},
        "red",
        "0 of 0 tests pass, 0 files do not collect; every test is skipped",
    ),
    "broken conftest": (
        {"test_a.py": "def test(): pass", "conftest.py": "import nowhere"},
        "aborted",
        "pytest ended with status 4, last line: ",
    ),
    "wrong option": (
        {"test_a.py": "def test(): pass", "pytest.ini": "[pytest]\naddopts = --no-such-option"},
        "aborted",
        "pytest ended with status 4, last line: ",
    ),
    "exits": (
        {"test_a.py": "import os\ndef test(): os._exit(7)"},
        "aborted",
        "pytest ended with status 7, last line: ",
    ),
}


@pytest.mark.parametrize(("files", "reason", "detail"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_suite_that_cannot_be_used_is_rejected_with_its_reason(
    measure: Measure, files: dict[str, str], reason: str, detail: str
):
    result = measure(files)
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("baseline", reason)
    assert result.detail.startswith(detail)
    assert len(result.detail.splitlines()) == 1


BOMB = """
import contextlib, os, time
def test():
    while True:
        with contextlib.suppress(OSError):
            os.fork() or time.sleep(30)
"""
FLOOD = """
def test(capfd):
    with capfd.disabled():
        while True: print('x' * 1_000_000)
"""
FILES = """
def test(tmp_path):
    for number in range(99):
        (tmp_path / str(number)).write_bytes(bytes(2**20))
"""
# Limits far below those of a real baseline, and a test that goes over them.
GREEDY = {
    "wall": (Limits(wall_s=1), "import time\ndef test(): time.sleep(60)"),
    "cpu": (Limits(cpu_s=1), "def test():\n    while True: pass"),
    "memory": (
        Limits(memory_bytes=200 * MIB),
        "def test():\n    blocks = []\n    while True: blocks.append(bytearray(2**22))",
    ),
    "processes": (
        Limits(num_processes=30),
        BOMB,
    ),
    "disk": (
        Limits(disk_bytes=20 * MIB),
        FILES,
    ),
    "output": (
        Limits(output_bytes=MIB),
        FLOOD,
    ),
}


@pytest.mark.parametrize("reason", GREEDY)
def test_a_suite_that_goes_over_a_limit_is_rejected_by_its_name(run_files: RunFiles, reason: str):
    limits, code = GREEDY[reason]
    files = {"test_a.py": "def test(): pass", "test_b.py": code}
    result = refuse_run(run_files(files, limits=limits), stage="baseline")
    assert isinstance(result, Reject)
    assert result.reason == reason
    assert result.detail == f"the suite went over its limit of {reason}"


def test_a_flood_of_output_is_a_reject_of_the_baseline(measure: Measure):
    code = "def test():\n    for _ in range(100): print('x' * 1_000_000)"
    result = measure({"test_a.py": code}, args=("-s",))
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("baseline", "output")


def test_a_suite_gets_ten_times_its_expected_time(make_tree: MakeTree, repo_for: RepoFor):
    limits = limits_for(repo_for(make_tree({}), wall_s=3))
    assert (limits.wall_s, limits.cpu_s) == (40, 34)
