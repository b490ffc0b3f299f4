"""Where code and tests stand: namespace packages, tests within the package, one module."""

from tests.pipeline.awkward.conftest import FarmFor, targets

# Two portions of one namespace, under `src`; tests of one basename in folders without `__init__`.
NAMESPACE = {
    "pyproject.toml": """\
[project]
name = "acme-metals"
version = "1.0"

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
testpaths = ["tests"]
""",
    "src/acme/metals/__init__.py": '"""Metals."""\n\nfrom .heat import melt, temper\n',
    "src/acme/metals/heat.py": '''\
"""Heat."""

from acme.units.scales import kelvin


def melt(metal, celsius):
    """Tell whether a metal melts."""
    points = {"tin": 505, "lead": 600}
    point = points[metal]
    return kelvin(celsius) >= point


def temper(celsius):
    """Return the colour of steel."""
    names = ["straw", "purple", "blue"]
    place = min(max((celsius - 200) // 50, 0), 2)
    return names[place]
''',
    "src/acme/units/scales.py": '''\
"""Scales; this folder has no `__init__`."""


def kelvin(celsius):
    """Return kelvins."""
    return celsius + 273


def fahrenheit(celsius):
    """Return degrees that Americans know."""
    scaled = celsius * 9
    fifth = scaled / 5
    return fifth + 32


def bars(pascal):
    """Return bars."""
    scale = 100_000
    value = pascal / scale
    return value
''',
    "tests/metals/test_all.py": """\
from acme import metals
from acme.metals import melt


def test_melt():
    assert melt("tin", 300)
    assert not melt("lead", 300)


def test_temper():
    assert metals.temper(220) == "straw"
    assert metals.temper(500) == "blue"


def test_temper_cold():
    assert metals.temper(0) == "straw"


def test_doc():
    assert metals.__doc__
""",
    "tests/units/test_all.py": """\
import acme.units.scales
from acme.units.scales import bars, fahrenheit


def test_fahrenheit():
    assert fahrenheit(100) == 212
    assert fahrenheit(0) == 32


def test_fahrenheit_cold():
    assert fahrenheit(-40) == -40


def test_bars():
    assert bars(200_000) == 2
    assert bars(0) == 0


def test_kelvin():
    assert acme.units.scales.kelvin(0) == 273
""",
}

# Shipped tests that import relatively; a sub-package has its own, which go with it.
INSIDE = {
    "setup.cfg": "[metadata]\nname = loom\n\n[tool:pytest]\ntestpaths = loom\n",
    "loom/__init__.py": '"""Cloth."""\n\nfrom .threads import spin, twist\n',
    "loom/threads.py": '''\
"""Threads."""


def spin(fibres):
    """Make a thread."""
    cleaned = [it for it in fibres if it.strip()]
    thread = "-".join(cleaned)
    return thread


def twist(one, other):
    """Make one thread of two."""
    pairs = zip(one, other, strict=False)
    twisted = "".join(a + b for a, b in pairs)
    return twisted
''',
    "loom/tests/__init__.py": "",
    "loom/tests/helpers.py": "def check(found, expected):\n    assert found == expected\n",
    "loom/tests/test_threads.py": """\
from .. import threads
from ..threads import spin
from .helpers import check


def test_spin():
    check(spin(["a", "b"]), "a-b")
    check(spin(["a", " ", "b"]), "a-b")


def test_spin_nothing():
    check(spin([]), "")


def test_twist():
    check(threads.twist("ab", "xy"), "axby")
    check(threads.twist("a", ""), "")


def test_doc():
    check(threads.__doc__, "Threads.")
""",
    "loom/dyes/__init__.py": '"""Dyes."""\n\nfrom .colours import mix\n',
    "loom/dyes/colours.py": '''\
"""Colours."""


def mix(one, other):
    """Mix two colours."""
    table = {frozenset("ry"): "orange", frozenset("by"): "green"}
    key = frozenset({one[0], other[0]})
    return table.get(key, "brown")
''',
    "loom/dyes/tests/__init__.py": "",
    "loom/dyes/tests/test_colours.py": """\
from ..colours import mix


def test_mix():
    assert mix("red", "yellow") == "orange"
    assert mix("yellow", "blue") == "green"


def test_mud():
    assert mix("red", "blue") == "brown"
""",
    "loom/tests/test_more.py": """\
import loom


def test_all(): assert loom.spin
def test_name(): assert loom.__name__ == "loom"
def test_doc(): assert loom.__doc__
""",
}

# One module at the top, its tests beside it in `tests.py`.
MODULE = {
    "setup.py": "from setuptools import setup\nsetup(name='knots', py_modules=['knots'])\n",
    "pytest.ini": "[pytest]\npython_files = tests.py\n",
    "knots.py": '''\
"""Knots.

>>> reef("a", "b")
'a=b'
"""

__all__ = ["bowline", "hitch", "reef"]


def reef(one, other):
    """Join two ropes."""
    ends = (one, other)
    knot = "=".join(ends)
    return knot


def bowline(rope, size=1):
    """Make a loop."""
    if size < 1:
        raise ValueError(size)
    return f"{rope}{'o' * size}"


def hitch(rope, post):
    """Fasten a rope."""
    turns = 2
    wound = rope * turns
    return f"{wound}@{post}"
''',
    "tests.py": """\
from unittest import TestCase, main

from knots import *
import knots


class KnotsTest(TestCase):
    def test_reef(self):
        self.assertEqual(reef("a", "b"), "a=b")
        self.assertEqual(reef("", ""), "=")

    def test_bowline(self):
        self.assertEqual(bowline("r"), "ro")
        self.assertEqual(bowline("r", 3), "rooo")

    def test_bowline_size(self):
        with self.assertRaises(ValueError):
            knots.bowline("r", 0)

    def test_hitch(self):
        self.assertEqual(hitch("r", "p"), "rr@p")
        self.assertEqual(hitch("", "q"), "@q")


class ModuleTest(TestCase):
    def test_names(self):
        for name in knots.__all__:
            self.assertTrue(callable(getattr(knots, name)))

    def test_doc(self):
        self.assertIn("Knots", knots.__doc__)

    def test_more(self):
        self.assertEqual(knots.__name__, "knots")

    def test_again(self):
        self.assertTrue(knots.__file__)


if __name__ == "__main__":
    main()
""",
}


def test_a_feature_stands_in_two_portions_of_a_namespace(farm_for: FarmFor):
    farm = farm_for(NAMESPACE)
    task = farm.right_task("acme.units.scales.kelvin and acme.metals.heat.melt")
    assert targets(task) == {
        "tests/metals/test_all.py::test_melt": "failed",
        "tests/units/test_all.py::test_kelvin": "failed",
    }


def test_a_package_goes_with_the_tests_inside_it_and_they_decide(farm_for: FarmFor):
    task = farm_for(INSIDE).right_task("loom.dyes")
    assert task.feature.kind == "subpackage"
    assert targets(task) == {
        "loom/dyes/tests/test_colours.py::test_mix": "failed",
        "loom/dyes/tests/test_colours.py::test_mud": "failed",
    }


def test_a_single_module_whose_tests_import_all_of_it_gives_tasks(farm_for: FarmFor):
    task = farm_for(MODULE).right_task("knots.bowline")
    assert targets(task) == {
        "tests.py::KnotsTest::test_bowline": "failed",
        "tests.py::KnotsTest::test_bowline_size": "failed",
    }
    assert "tests.py::ModuleTest::test_names" in task.evidence.pass_to_pass
