"""A run ends with the first outcome that settles it, and not before."""

import pytest

from pipeline.task.suite import EarlyStop, SuiteRequest
from tests.pipeline.conftest import RunFiles

FILES = {
    "test_a.py": """
import unittest
import pytest

def test_first():
    assert True

def test_names():
    undefined

def test_skips():
    pytest.skip("not here")

def test_fails():
    assert False

@pytest.fixture
def torn():
    yield
    raise KeyError("torn")

def test_torn(torn):
    pass

def test_last():
    assert True
"""
}
NAMES = ("first", "names", "skips", "fails", "torn", "last")
IDS = {name: f"test_a.py::test_{name}" for name in NAMES}


@pytest.mark.parametrize(
    ("must_pass", "excused", "last"),
    [
        (NAMES, (), "names"),
        (NAMES, ("NameError",), "skips"),
        (("fails", "last"), (), "fails"),
        (("fails", "last"), ("NameError",), "fails"),
        (("fails", "last"), ("AssertionError",), "last"),
        (("torn", "last"), (), "torn"),
        (("torn", "last"), ("KeyError",), "last"),
        ((), (), "last"),
    ],
)
def test_a_run_ends_after_the_first_test_that_must_pass_and_does_not(
    run_files: RunFiles, must_pass: tuple[str, ...], excused: tuple[str, ...], last: str
):
    stop = EarlyStop(must_pass=tuple(IDS[name] for name in must_pass), excused=excused)
    run = run_files(FILES, SuiteRequest(stop=stop))
    ran = list(IDS.values())[: NAMES.index(last) + 1]
    assert [outcome.id for outcome in run.outcomes] == ran
    assert run.ended
    assert list(run.collected) == list(IDS.values())


def test_a_run_that_is_ended_early_says_the_same_of_what_it_ran(run_files: RunFiles):
    whole = run_files(FILES).by_id()
    run = run_files(FILES, SuiteRequest(stop=EarlyStop(must_pass=(IDS["torn"],))))
    outcomes = {key: outcome.outcome for key, outcome in run.by_id().items()}
    assert outcomes == {key: whole[key].outcome for key in outcomes}
    assert outcomes[IDS["torn"]] == "error"
    assert run.messages[IDS["torn"]] == "KeyError: 'torn'"
