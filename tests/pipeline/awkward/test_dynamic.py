"""Names that are put together when they are needed."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "tox.ini": "[pytest]\ntestpaths = tests\n",
    "robot/__init__.py": '''\
"""A robot."""

from robot.commands import Robot, run

__all__ = ["Robot", "run"]
''',
    "robot/commands.py": '''\
"""Commands."""

import importlib


def parse_number(text):
    """Read a number."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    return sign * int(digits)


def parse_word(text):
    """Read a word."""
    bare = text.strip()
    quoted = bare.strip("'")
    return quoted


def run(name, kind, text):
    """Let a robot do something with a value of some kind."""
    value = globals()[f"parse_{kind}"](text)
    return Robot().do(name, value)


def load(name):
    """Return a part by the name of its module."""
    return importlib.import_module(f"robot.parts.{name}")


class Robot:
    """Does as it is told."""

    def do(self, name, value):
        """Carry out a command."""
        command = getattr(self, "do_" + name, None)
        if command is None:
            return f"cannot {name}"
        return command(value)

    def do_go(self, value):
        """Go some steps."""
        steps = abs(value)
        way = "forward" if value > 0 else "back"
        return f"{way} {steps}"

    def do_say(self, value):
        """Say something."""
        mark = "!"
        loud = str(value).upper()
        return loud + mark

    def do_wait(self, value):
        """Wait."""
        dots = "." * value
        text = f"waiting{dots}"
        return text
''',
    "robot/parts/__init__.py": "",
    "robot/parts/arm.py": '''\
"""An arm."""


def describe():
    """Say what it is."""
    parts = ["upper", "lower"]
    text = " and ".join(parts)
    return f"arm: {text}"


def reach():
    """Return how far it goes."""
    upper, lower = 3, 2
    total = upper + lower
    return total
''',
    "robot/parts/leg.py": '''\
"""A leg."""


def describe():
    """Say what it is."""
    parts = ["thigh", "shank"]
    text = " and ".join(parts)
    return f"leg: {text}"
''',
    "tests/test_robot.py": """\
import pytest

from robot import Robot, run
from robot.commands import load


def test_go():
    assert run("go", "number", "3") == "forward 3"
    assert run("go", "number", "-2") == "back 2"


def test_say():
    assert Robot().do("say", "hi") == "HI!"
    assert Robot().do("say", "") == "!"


def test_wait():
    assert Robot().do("wait", 2) == "waiting.."
    assert Robot().do("wait", 0) == "waiting"


def test_cannot():
    assert Robot().do("fly", 1) == "cannot fly"


def test_word():
    assert run("fly", "word", " 'x' ") == "cannot fly"


def test_quote():
    assert run("say", "word", "'x'") == "X!"
    assert run("say", "word", "y ") == "Y!"


@pytest.mark.parametrize(("name", "text"), [("arm", "upper and lower"), ("leg", "thigh and shank")])
def test_part(name, text):
    assert load(name).describe() == f"{name}: {text}"


def test_reach():
    assert load("arm").reach() == 5


def test_no_part():
    with pytest.raises(ImportError):
        load("wing")


def test_a(): assert Robot.__doc__
def test_b(): assert Robot().do
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_a_function_whose_name_is_put_together_gives_a_task(farm: Farm):
    assert targets(farm.right_task("robot.commands.parse_word")) == {
        "tests/test_robot.py::test_word": "failed",
        "tests/test_robot.py::test_quote": "failed",
    }


def test_a_module_that_one_case_of_a_table_loads_is_found_and_makes_no_task(farm: Farm):
    assert farm.reject("robot.parts.leg").reason == "nothing_to_hide"
