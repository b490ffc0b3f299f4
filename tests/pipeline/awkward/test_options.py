"""Options that a suite has by default: thresholds of coverage, workers, an early end."""

import pytest

from pipeline.task.reject import Reject
from tests.pipeline.awkward.conftest import PLUGINS, Farm, FarmFor, PrepareFiles, targets

FILES = {
    "setup.cfg": """\
[metadata]
name = loaf

[tool:pytest]
addopts = -x -n auto --dist loadfile --ff --durations=3 --junitxml=report.xml
    --cov=loaf --cov-report=term --cov-report=html --cov-append --cov-fail-under=100
""",
    "loaf/__init__.py": '"""Bread."""\n\nfrom loaf.dough import knead, proof, shape\n',
    "loaf/dough.py": '''\
"""What becomes bread."""


def knead(flour, water):
    """Mix until it holds together."""
    ratio = water / flour
    if ratio > 1:
        raise ValueError("soup")
    return {"weight": flour + water, "ratio": ratio}


def proof(dough, hours):
    """Let it rise."""
    growth = 1 + hours / 10
    grown = dough["weight"] * growth
    return {**dough, "weight": grown}


def shape(dough, num):
    """Cut it into loaves."""
    weight = dough["weight"]
    share = weight / num
    return [share] * num
''',
    "tests/test_knead.py": """\
import pytest

from loaf import knead


def test_knead():
    assert knead(4, 2) == {"weight": 6, "ratio": 0.5}
    assert knead(2, 2)["ratio"] == 1


def test_soup():
    with pytest.raises(ValueError):
        knead(1, 2)
""",
    "tests/test_proof.py": """\
from loaf import proof


def test_proof():
    assert proof({"weight": 10}, 10) == {"weight": 20}
    assert proof({"weight": 10}, 0) == {"weight": 10}


def test_proof_keeps_the_ratio():
    assert proof({"weight": 1, "ratio": 2}, 0)["ratio"] == 2
""",
    "tests/test_shape.py": """\
import pytest

from loaf import shape


@pytest.mark.parametrize("num", [1, 2, 4])
def test_shape(num):
    assert shape({"weight": 8}, num) == [8 / num] * num


def test_nothing():
    with pytest.raises(ZeroDivisionError):
        shape({"weight": 8}, 0)
""",
    "tests/test_broken.py": """\
import loaf


def test_oven():
    assert loaf.oven


def test_workers(worker_id):
    assert worker_id.startswith("gw")
""",
}
HOW = {"install": PLUGINS}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES, **HOW)


def test_each_test_is_seen_whatever_the_options_of_the_suite(farm: Farm):
    assert farm.prepared.baseline.plugins == ("xdist", "xdist.looponfail", "pytest_cov")
    assert farm.quarantined == {
        "tests/test_broken.py::test_oven": "failing",
        # It fails in a suite without workers.
        "tests/test_broken.py::test_workers": "failing",
    }


def test_a_threshold_of_coverage_breaks_no_grade(farm: Farm):
    task = farm.right_task("loaf.dough.proof")
    assert targets(task) == {
        "tests/test_proof.py::test_proof": "failed",
        "tests/test_proof.py::test_proof_keeps_the_ratio": "failed",
    }


def test_a_suite_whose_plugins_are_not_installed_is_rejected_with_the_option(
    prepare_files: PrepareFiles,
):
    result = prepare_files(FILES)
    assert isinstance(result, Reject)
    assert (result.stage, result.reason) == ("baseline", "aborted")
    assert "unrecognized arguments: -n --dist loadfile --cov=loaf" in result.detail
