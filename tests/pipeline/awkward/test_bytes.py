"""Sources as other decades and editors wrote them."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

# With the line ends of another system, a form feed, tabs, and none at its end.
CRLF = '''\
"""Washing."""


def wash(text):
\t"""Take the dirt away."""
\tleft = text.replace("dirt", "")
\twords = left.split()
\treturn " ".join(words)

\x0c
def clean(text):
\t"""Take the mud away."""
\tleft = text.replace("mud", "")
\twords = left.split()
\treturn " ".join(words)'''
TABS = '''\
"""Weighing."""

if True:
\tdef count(text): num = text.count("a"); twice = num * 2; return twice

def weigh(text):
\tif text:
\t        total = len(text)
\t        double = total * 2
\telse:
\t\tdouble = 0
\treturn double
'''
LATIN = '''\
# -*- coding: latin-1 -*-
"""Sorting."""


def sort(text):
    """Put \udce4 beside a."""
    letters = sorted(text)
    joined = "".join(letters)
    return joined.replace("\udce4", "a")
'''
TEST_CRLF = """\
import relics
from relics.washing import wash, clean


def test_wash():
    assert wash("a dirt b") == "a b"
    assert wash("dirt") == ""


def test_wash_nothing():
    assert wash("") == ""


def test_clean():
    assert clean("a mud") == "a"
    assert clean("mud") == ""


def test_count():
    assert relics.count("aa") == 4
    assert relics.count("") == 0


def test_doc(): assert relics.__doc__
def test_names(): assert relics.sorting and relics.weigh
"""
TEST_LATIN = """\
# coding: latin-1
from relics import sorting
from relics.weighing import weigh


def test_sort():
    assert sorting.sort("b\udce4") == "ba"
    assert sorting.sort("ba") == "ab"


def test_weigh():
    assert weigh("ab") == 4
    assert weigh("") == 0


def test_weigh_more():
    assert weigh("\udce4") == 2
"""
INIT = '''\
\ufeff"""Relics."""

from .washing import clean, wash
from .weighing import count, weigh
from . import sorting
'''
FILES = {
    "setup.cfg": "[metadata]\r\nname = relics\r\n",
    "relics/__init__.py": INIT.replace("\n", "\r\n"),
    "relics/old.py": 'def shout(text):\n    print "loud", text\n',
    "relics/sorting.py": LATIN,
    "relics/washing.py": CRLF.replace("\n", "\r\n"),
    "relics/weighing.py": TABS,
    "tests/test_more.py": TEST_CRLF.replace("\n", "\r\n"),
    "tests/test_latin.py": TEST_LATIN,
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_line_ends_and_marks_of_other_systems_stay_as_they_are(farm: Farm):
    task = farm.right_task("relics.washing.wash")
    assert targets(task) == {
        "tests/test_more.py::test_wash": "failed",
        "tests/test_more.py::test_wash_nothing": "failed",
    }
    lines = task.deletion.patch.split("\n")
    added = [it for it in lines if it.startswith("+") and not it.startswith("+++")]
    assert added
    assert all(it.endswith("\r") for it in added)


def test_a_file_of_tests_that_is_not_utf_8_keeps_its_imports_and_makes_no_task(farm: Farm):
    assert farm.reject("relics.weighing.weigh").reason == "does_not_collect"
