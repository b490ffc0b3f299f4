"""A suite that was written for nose, with names of its own for what is a test."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "tox.ini": """\
[tox]
envlist = py27, py311

[pytest]
testpaths = test specs
python_files = test*.py *_spec.py
python_classes = Test *Spec
python_functions = test should_*
""",
    "kites/__init__.py": '"""Kites."""\n\nfrom kites.flight import drop, lift, name\n',
    "kites/flight.py": '''\
"""Flight."""


def name(wind):
    """Return what a wind is called."""
    if wind < 0:
        raise ValueError(wind)
    return "storm" if wind > 10 else "breeze"


def lift(areas):
    """Return how much some sails carry."""
    carried = [area * 2 for area in areas]
    total = sum(carried)
    return total


def drop(height, rate):
    """Return how long a fall takes."""
    taken = height / rate
    rounded = round(taken, 1)
    return rounded
''',
    "test/tools.py": """\
import functools


def raises(exception):
    def decorate(function):
        @functools.wraps(function)
        def newfunc(*args, **kw):
            try:
                function(*args, **kw)
            except exception:
                return
            raise AssertionError("did not raise")
        return newfunc
    return decorate


def eq_(a, b):
    assert a == b, "%r != %r" % (a, b)
""",
    "test/test_flight.py": """\
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from tools import eq_, raises
from kites import *
import kites

WINDS = []


def setup_module():
    WINDS.append(3)


def teardown_module():
    WINDS.clear()


@raises(ValueError)
def test_no_wind():
    name(-1)


def test_name():
    eq_(name(WINDS[0]), "breeze")
    eq_(name(11), "storm")


class TestLift(object):
    def setup_method(self):
        self.lift = kites.lift([1, 2])

    def test_sum(self):
        eq_(self.lift, 6)
        eq_(kites.lift([]), 0)

    def test_positive(self):
        assert self.lift > 0


def test_winds(): eq_(WINDS, [3])
def test_doc(): assert kites.__doc__
def test_helper(): assert 0
test_helper.__test__ = False
""",
    "test/test_yields.py": """\
from kites import lift


def check(areas, total):
    assert lift(areas) == total


def test_generated():
    yield check, [1], 2
    yield check, [1, 1], 4
""",
    # Neither folder nor file says of itself that these are tests.
    "specs/drop_spec.py": """\
from kites import drop


class DropSpec:
    def should_round(self):
        assert drop(1, 3) == 0.3
        assert drop(4, 2) == 2

    def should_take_no_time(self):
        assert drop(0, 2) == 0
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_a_file_of_tests_that_yield_is_not_collected_and_the_others_are(farm: Farm):
    files = {key.partition("::")[0] for key in farm.prepared.baseline.passing}
    assert files == {"specs/drop_spec.py", "test/test_flight.py"}
    assert farm.quarantined == {}


def test_what_a_method_sets_up_gives_a_task(farm: Farm):
    assert targets(farm.right_task("kites.flight.lift")) == {
        "test/test_flight.py::TestLift::test_sum": "error",
        "test/test_flight.py::TestLift::test_positive": "error",
    }


def test_tests_that_a_solver_may_take_for_code_make_no_task(farm: Farm):
    assert farm.reject("kites.flight.drop").reason == "nothing_to_hide"
