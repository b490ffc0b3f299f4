"""A suite that is half doctests: in docstrings, in a page of documentation, in README."""

import pytest

from pipeline.task.record import Quarantined
from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "pyproject.toml": """\
[project]
name = "spelling"
version = "1.0"

[tool.pytest.ini_options]
addopts = "--doctest-modules --doctest-glob='*.rst'"
testpaths = ["src", "tests", "docs"]
doctest_optionflags = "NORMALIZE_WHITESPACE ELLIPSIS"
""",
    "docs/guide.rst": """\
Guide
=====

Words are joined as people join them:

    >>> from spelling import join
    >>> join(["cat", "dog"])
    'cat and dog'
""",
    "docs/roman.rst": """\
Numbers
=======

    >>> from spelling import roman
    >>> roman(4)
    'IV'
""",
    "src/spelling/__init__.py": '''\
"""Words and numbers."""

from spelling.numbers import ordinal, roman, title_of
from spelling.words import join, plural, shout, whisper

__all__ = ["join", "ordinal", "plural", "roman", "shout", "title_of", "whisper"]
''',
    "src/spelling/words.py": '''\
"""Words.

>>> join(["a", "b"])
'a and b'
"""


def plural(word):
    """Return a word for many.

    >>> plural("box")
    'boxes'
    """
    ending = "es" if word[-1] in "sx" else "s"
    changed = word + ending
    return changed


def join(words):
    """Join words as people do.

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = words
    start = ", ".join(first)
    return f"{start} and {last}"


def shout(text):
    """Say it loudly.

    >>> shout("hello")
    'HELLO!'
    """
    loud = text.upper()
    marked = loud + "!"
    return marked


def whisper(text):
    """Say it quietly, unlike `shout`.

    >>> shout(whisper("HELLO"))
    'HELLO...!'
    """
    quiet = text.lower()
    marked = quiet + "..."
    return marked
''',
    "src/spelling/numbers.py": '''\
"""Numbers."""

_SIGNS = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def roman(number):
    """Return a number as the Romans wrote it.

    >>> roman(14)
    'XIV'
    """
    text = ""
    for value, sign in _SIGNS:
        while number >= value:
            text, number = text + sign, number - value
    return text


def ordinal(number):
    """Return the number of a place.

    >>> ordinal(3)
    '3rd'
    """
    ending = {1: "st", 3: "rd"}.get(number, "th")
    text = f"{number}{ending}"
    return text


def title_of(number):
    """Return the title of a chapter."""
    text = f"Chapter {number}"
    line = "=" * len(text)
    return f"{text}\\n{line}"
''',
    "tests/test_words.py": """\
from spelling import join, plural


def test_plural():
    assert plural("dog") == "dogs"
    assert plural("bus") == "buses"


def test_join():
    assert join(["x", "y"]) == "x and y"
    assert join(["x", "y", "z"]) == "x, y and z"


def test_join_nothing():
    assert join(["x", ""]) == "x and "
    assert join(["", ""]) == " and "
""",
    "tests/test_numbers.py": """\
import pytest

from spelling import ordinal, title_of


@pytest.mark.parametrize(("number", "text"), [(1, "1st"), (3, "3rd"), (4, "4th"), (9, "9th")])
def test_ordinal(number, text):
    assert ordinal(number) == text


def test_title():
    assert title_of(1).startswith("Chapter 1")
    assert title_of(2).endswith("=========")
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_doctests_of_others_are_targets_and_those_of_the_deleted_code_are_set_aside(farm: Farm):
    task = farm.right_task("spelling.words.join")
    assert targets(task) == {
        "docs/guide.rst::guide.rst": "failed",
        "src/spelling/words.py::spelling.words": "failed",
        "tests/test_words.py::test_join": "failed",
        "tests/test_words.py::test_join_nothing": "failed",
    }
    own = Quarantined(id="src/spelling/words.py::spelling.words.join", reason="own-doctest")
    assert task.evidence.quarantined == (own,)
    assert "src/spelling/words.py::spelling.words.plural" in task.evidence.pass_to_pass


@pytest.mark.parametrize("title", ["spelling.words.shout", "spelling.numbers.roman"])
def test_what_doctests_alone_ask_for_is_no_task(farm: Farm, title: str):
    assert farm.reject(title).reason == "nothing_to_hide"
