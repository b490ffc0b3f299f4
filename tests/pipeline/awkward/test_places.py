"""What comes out depends on where, in which language and with which hash seed it runs."""

import pytest

from pipeline.task.origin import Variable
from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "setup.cfg": "[metadata]\nname = clocks\n",
    "clocks/__init__.py": "from clocks.hands import hour, label, month, order, tags\n",
    "clocks/hands.py": '''\
"""Hands."""

import datetime
import locale
import time


def hour(stamp):
    """Return the hour of a time here."""
    local = time.localtime(stamp)
    shown = f"{local.tm_hour:02}"
    return shown + "h"


def month(number):
    """Return the name of a month in the language of the machine."""
    day = datetime.date(2000, number, 1)
    name = day.strftime("%B")
    return name.title()


def label(text):
    """Return a text in the order of the language."""
    locale.setlocale(locale.LC_ALL, "")
    letters = sorted(text, key=locale.strxfrm)
    return "".join(letters)


def tags(text):
    """Return the words of a text, each once."""
    words = set(text.split())
    joined = ",".join(words)
    return joined


def order(text):
    """Return the words of a text in order, each once."""
    words = dict.fromkeys(text.split())
    joined = ",".join(words)
    return joined
''',
    "tests/test_hands.py": """\
import locale
import os
import time

import pytest

from clocks import hour, label, month, order, tags

WORDS = "a b c d e f g h"


def test_hour():
    assert hour(0) == "03h"
    assert hour(3600) == "04h"


def test_hour_in_winter():
    assert hour(86400 * 5) == "03h"


@pytest.fixture
def auckland(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_hour_far_away(auckland):
    assert hour(0) in {"00h", "12h"}


def test_month():
    assert month(3) == "March"
    assert month(12) == "December"


def test_month_in_german():
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    assert month(3) == "M\\u00e4rz"


def test_label():
    assert label("bca") == "abc"
    assert label("") == ""


def test_tags():
    assert sorted(tags("b a b").split(",")) == ["a", "b"]
    assert tags("") == ""


def test_tags_in_order():
    assert tags(WORDS) == WORDS.replace(" ", ",")


@pytest.mark.parametrize("word", set(WORDS.split()))
def test_order_of_one(word):
    assert order(word) == word


def test_order():
    assert order("b a b") == "b,a"
    assert order("") == ""


def test_zone():
    assert time.tzname[0] == "EAT"


def test_utc():
    assert os.environ.get("TZ", "UTC") == "UTC"
""",
}
HOW = {"variables": (Variable(name="TZ", value="EAT-3"),)}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES, **HOW)


def test_tests_that_want_another_machine_or_hash_seed_are_set_aside(farm: Farm):
    assert farm.quarantined == {
        "tests/test_hands.py::test_month_in_german": "failing",
        "tests/test_hands.py::test_tags_in_order": "failing",
        "tests/test_hands.py::test_utc": "failing",
    }


def test_a_task_is_made_and_graded_where_the_manifest_says(farm: Farm):
    task = farm.right_task("clocks.hands.hour")
    assert targets(task) == {
        "tests/test_hands.py::test_hour": "failed",
        "tests/test_hands.py::test_hour_in_winter": "failed",
        "tests/test_hands.py::test_hour_far_away": "failed",
    }
