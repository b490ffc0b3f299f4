"""Tables that decorators and `__init_subclass__` fill, and tests are parametrized over."""

import pytest

from tests.pipeline.awkward.conftest import Farm, FarmFor, targets

FILES = {
    "pyproject.toml": "[project]\nname = 'cipher'\n",
    "cipher/__init__.py": '''\
"""Ciphers."""

from cipher import codecs, rules
from cipher.registry import CODECS, Rule, codec

__all__ = ["CODECS", "Rule", "codec", "codecs", "rules"]
''',
    "cipher/registry.py": '''\
"""Tables."""

CODECS = {}


def codec(name):
    """Register a function under a name."""

    def register(function):
        CODECS[name] = function
        return function

    return register


class Rule:
    """Something that a text must be."""

    known = {}

    def __init_subclass__(cls, **options):
        Rule.known[cls.__name__.lower()] = cls
''',
    "cipher/codecs.py": '''\
"""Codecs."""

from cipher.registry import CODECS, codec


@codec("rev")
def reverse(text):
    """Turn a text round."""
    letters = list(text)
    letters.reverse()
    return "".join(letters)


@codec("rot")
def rotate(text):
    """Move the first letter to the end."""
    first = text[:1]
    rest = text[1:]
    return rest + first


@codec("dup")
def double(text):
    """Write each letter twice."""
    pairs = [letter * 2 for letter in text]
    joined = "".join(pairs)
    return joined


def squeeze(text):
    """Leave out blanks."""
    words = text.split()
    joined = "".join(words)
    return joined


def hexed(text):
    """Write numbers for letters."""
    numbers = [f"{ord(it):x}" for it in text]
    joined = "".join(numbers)
    return joined


CODECS.update({"squeeze": squeeze, "hex": hexed})
''',
    "cipher/rules.py": '''\
"""Rules."""

from cipher.registry import Rule


class Short(Rule):
    """At most five letters."""

    def check(self, text):
        """Tell whether a text is short."""
        length = len(text)
        return length <= 5


class Lower(Rule):
    """No capitals."""

    def check(self, text):
        """Tell whether a text is in lower case."""
        lowered = text.lower()
        return lowered == text


class Plain(Rule):
    """Letters alone."""

    def check(self, text):
        """Tell whether a text is of letters."""
        odd = [it for it in text if not it.isalpha()]
        return not odd
''',
    "tests/test_codecs.py": """\
import pytest

from cipher import CODECS, Rule
from cipher.codecs import reverse


@pytest.mark.parametrize("name", sorted(CODECS))
def test_each_codec_takes_nothing(name):
    assert CODECS[name]("") == ""


@pytest.mark.parametrize("rule", Rule.known.values(), ids=Rule.known)
def test_each_rule_has_help(rule):
    assert rule.__doc__


def test_reverse():
    assert CODECS["rev"]("abc") == "cba"
    assert reverse("ab") == "ba"


def test_rotate():
    assert CODECS["rot"]("abc") == "bca"
    assert CODECS["rot"]("a") == "a"


def test_double():
    assert CODECS["dup"]("ab") == "aabb"
    assert CODECS["dup"]("a") == "aa"


def test_squeeze():
    assert CODECS["squeeze"](" a b") == "ab"
    assert CODECS["squeeze"]("a") == "a"


def test_hex():
    assert CODECS["hex"]("a") == "61"
    assert CODECS["hex"]("ab") == "6162"


@pytest.mark.parametrize(
    ("name", "text", "good"),
    [
        ("short", "abc", True),
        ("short", "abcdef", False),
        ("lower", "abc", True),
        ("lower", "Abc", False),
        ("plain", "abc", True),
        ("plain", "a1", False),
    ],
)
def test_rules(name, text, good):
    assert Rule.known[name]().check(text) is good


def test_all_rules():
    assert sorted(Rule.known) == ["lower", "plain", "short"]
""",
}


@pytest.fixture(scope="module")
def farm(farm_for: FarmFor) -> Farm:
    return farm_for(FILES)


def test_a_test_of_each_entry_of_a_registry_goes_missing_and_comes_back(farm: Farm):
    task = farm.right_task("cipher.codecs.double")
    assert targets(task) == {
        "tests/test_codecs.py::test_each_codec_takes_nothing[dup]": "missing",
        "tests/test_codecs.py::test_double": "failed",
    }


def test_a_registry_that_another_test_lists_makes_no_task(farm: Farm):
    reject = farm.reject("cipher.rules.Lower")
    assert reject.reason == "others_break"
    assert "test_all_rules" in reject.detail
