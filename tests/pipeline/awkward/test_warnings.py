"""Every warning is an error, as in every third suite: a task must not turn on one."""

import pytest

from pipeline.task.origin import Variable
from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

HOW = {"variables": (Variable(name="PYTHONWARNINGS", value="error"),)}
FILES = {
    "pyproject.toml": """\
[project]
name = "kettle"
version = "1.0"

[tool.pytest.ini_options]
addopts = "-ra --strict-markers -W error::ResourceWarning"
xfail_strict = true
filterwarnings = ["error", "ignore:brew_tea:DeprecationWarning"]
markers = ["slow: takes its time"]
""",
    "kettle/__init__.py": '''\
"""Hot water."""

from kettle.brew import brew, cool, steep, strain
from kettle.legacy import brew_tea, pour

__all__ = ["brew", "brew_tea", "cool", "pour", "steep", "strain"]
''',
    "kettle/brew.py": '''\
"""What is done with hot water."""

import warnings


def brew(leaves, minutes):
    """Brew leaves for some minutes; more than ten of them are too many."""
    if minutes > 10:
        warnings.warn("bitter", UserWarning, stacklevel=2)
    strength = leaves * minutes
    return f"tea of strength {strength}"


def steep(leaves, cups=1):
    """Return the leaves for each cup."""
    if not cups:
        raise ValueError("no cups")
    share, rest = divmod(leaves, cups)
    return share + bool(rest)


def cool(degrees, minutes):
    """Return the heat that is left."""
    lost = 3 * minutes
    left = degrees - lost
    return max(left, 20)


def strain(path):
    """Return the lines of a file that are no leaves."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split()
    return [line for line in lines if line != "leaf"]
''',
    "kettle/legacy.py": '''\
"""What is kept for old programs."""

import functools
import warnings

from kettle.brew import brew, steep


def deprecated(function):
    """Warn whoever calls a function."""

    @functools.wraps(function)
    def warning(*args):
        warnings.warn(f"{function.__name__} is old", DeprecationWarning, stacklevel=2)
        return function(*args)

    return warning


@deprecated
def pour(leaves, cups):
    """Brew for each cup."""
    share = steep(leaves, cups)
    cup = brew(share, 3)
    return [cup] * cups


def brew_tea(leaves):
    """Brew as ever."""
    warnings.warn("brew_tea is old", DeprecationWarning, stacklevel=2)
    minutes = 3
    return brew(leaves, minutes)
''',
    "tests/test_brew.py": """\
import pytest

from kettle import brew, cool, steep, strain


def test_brew():
    assert brew(2, 3) == "tea of strength 6"
    assert brew(1, 1) == "tea of strength 1"


def test_too_long():
    with pytest.warns(UserWarning, match="bitter"):
        assert brew(2, 11) == "tea of strength 22"


def test_steep():
    assert steep(6, 3) == 2
    assert steep(7, 3) == 3


def test_steep_nothing():
    with pytest.raises(ValueError, match="no cups"):
        steep(1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "left"), [(1, 97), (10, 70), (60, 20)])
def test_cool(minutes, left):
    assert cool(100, minutes) == left


def test_cold():
    assert cool(20, 0) == 20
    assert cool(30, 1) == 27


def test_strain(tmp_path):
    (tmp_path / "cup").write_text("tea leaf tea")
    assert strain(tmp_path / "cup") == ["tea", "tea"]
    (tmp_path / "cup").write_text("leaf")
    assert strain(tmp_path / "cup") == []


def test_strain_nothing(tmp_path):
    with pytest.raises(FileNotFoundError):
        strain(tmp_path / "cup")
""",
    "tests/test_legacy.py": """\
import pytest

from kettle import brew_tea, pour


def test_pour():
    with pytest.deprecated_call():
        assert pour(2, 2) == ["tea of strength 3", "tea of strength 3"]


def test_pour_warns():
    with pytest.warns(DeprecationWarning, match="pour is old"):
        pour(1, 1)


def test_brew_tea():
    assert brew_tea(2) == "tea of strength 6"
    assert brew_tea(1) == "tea of strength 3"
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES, **HOW)


def test_a_suite_that_takes_warnings_for_errors_passes_as_a_whole(farm: Farm):
    assert farm.quarantined == {}


def test_a_deprecation_goes_with_its_decorator_and_no_warning_breaks_another_test(farm: Farm):
    task = farm.right_task("kettle.legacy.deprecated and kettle.legacy.pour")
    assert targets(task) == {
        "tests/test_legacy.py::test_pour": "failed",
        "tests/test_legacy.py::test_pour_warns": "failed",
    }
    assert "tests/test_legacy.py::test_brew_tea" in task.evidence.pass_to_pass
