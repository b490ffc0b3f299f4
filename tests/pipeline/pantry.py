"""A small library with a suite: functions, a class, methods, a helper, re-exports, doctests.

The functions of `pantry/odd.py` are such that a deletion is found out to be wrong, one way each.
"""

FILES = {
    "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
    "README.md": "# Pantry\n\n`pantry.convert` converts.\n",
    "pantry/__init__.py": '''\
"""Shelves and what is on them."""

from pantry.labels import Label
from pantry.odd import whisper
from pantry.shelf import Shelf
from pantry.units import convert, parse_amount
from pantry.words import slug

__all__ = [
    "Label",
    "Shelf",
    "convert",
    "open_shelf",
    "parse_amount",
    "slug",
    "whisper",
]


def open_shelf():
    """Return an empty shelf."""
    return Shelf()
''',
    "pantry/units.py": '''\
"""Amounts and their units."""

import re

_FACTORS = {"g": 1.0, "kg": 1000.0, "oz": 28.35}


def _factor(unit):
    if unit not in _FACTORS:
        raise ValueError(f"unknown unit {unit!r}")
    return _FACTORS[unit]


def convert(amount, source, target="g"):
    """Convert an amount from one unit to another.

    Raises `ValueError` for a unit that is not known.

    Example:
        >>> convert(2, "kg")
        2000.0
    """
    grams = amount * _factor(source)
    converted = grams / _factor(target)
    return converted


def parse_amount(text):
    """Split a text such as `2.5 kg` into number and unit."""
    match = re.fullmatch(r"([0-9.]+) *([a-z]+)", text)
    if match is None:
        raise ValueError(text)
    return float(match[1]), match[2]
''',
    "pantry/shelf.py": '''\
"""Where things are kept."""


class Shelf:
    """A shelf of named things, in grams."""

    def __init__(self, things=()):
        self.things = dict(things)

    def add(self, name, grams):
        """Put something on the shelf."""
        self.things[name] = self.things.get(name, 0) + grams

    def find(self, start):
        """Return the names that begin with some letters, in order."""
        names = sorted(self.things)
        found = [name for name in names if name.startswith(start)]
        return found

    def heaviest(self, count=1):
        """Return the names of the heaviest things."""
        ranked = sorted(self.things, key=self.things.get, reverse=True)
        chosen = ranked[:count]
        return chosen
''',
    "pantry/labels.py": '''\
"""What is written on jars."""


class Label:
    """A text with a border around it."""

    border = "|"

    def __init__(self, text, width=10):
        self.text = text
        self.width = width

    @property
    def room(self):
        """How long a text fits in."""
        return self.width - 2 * len(self.border)

    def render(self):
        """Return the text between borders, padded to the width."""
        return self.border + self.text[: self.room].ljust(self.room) + self.border

    def __len__(self):
        return self.width
''',
    "pantry/words.py": '''\
"""Names for things."""


def slug(text):
    """Return a text in lower case, with dashes for blanks.

    >>> slug("Red Lentils")
    'red-lentils'
    """
    words = text.lower().split()
    joined = "-".join(words)
    return joined
''',
    "pantry/odd.py": '''\
"""Functions that do not go quietly."""


def whisper(text):
    """Be named by a test that is not about it."""
    quiet = text.lower()
    marked = quiet + "..."
    return marked


def hum(text):
    """Be imported where nobody sees that it comes from here."""
    tune = text.lower()
    marked = f"~{tune}~"
    return marked


def howl(text):
    """Be needed while this module is imported."""
    loud = text.upper()
    marked = f"{loud}!!!"
    return marked


def growl(text):
    """Be needed while another test is collected."""
    low = text.lower()
    marked = f"grr, {low}"
    return marked


def sigh(text):
    """Have a test that does without."""
    sad = text.lower()
    marked = f"{sad}, alas"
    return marked


def murmur(text):
    """Have a test that does without at times."""
    vague = text.lower()
    marked = f"{vague}, perhaps"
    return marked


LOUDEST = globals()["ho" + "wl"]
''',
    "pantry/lazy.py": '''\
"""All that is odd, on demand."""

from pantry import odd


def __getattr__(name):
    return getattr(odd, name)
''',
    "tests/test_odd.py": """\
import os

import pantry
from pantry import odd


def test_whisper():
    assert odd.whisper("Hot") == "hot..."
    assert odd.whisper("Cold") == "cold..."


def test_exports():
    assert all(hasattr(pantry, name) for name in ("Shelf", "whisper"))


def test_howl():
    assert odd.howl("hot") == "HOT!!!"
    assert odd.howl("cold") == "COLD!!!"


def test_sigh():
    sigh = getattr(odd, "sigh", str.lower)
    assert sigh("Hot")[:3] == "hot"
    assert sigh("Cold")[:4] == "cold"


def test_murmur():
    asks = hasattr(odd, "murmur") or os.environ["PYTHONHASHSEED"] == "0"
    assert not asks or odd.murmur("Hot") == "hot, perhaps"
    assert not asks or odd.murmur("Cold") == "cold, perhaps"
""",
    "tests/test_lazy.py": """\
from pantry.lazy import hum, whisper


def test_hum():
    assert hum("Salt") == "~salt~"
    assert hum("OATS") == "~oats~"


def test_not_hum():
    assert callable(whisper)
""",
    "tests/test_growl.py": """\
from pantry import odd

GROWL = vars(odd)["gro" + "wl"]


def test_growl():
    assert GROWL("Bear") == "grr, bear"
    assert GROWL("Cat") == "grr, cat"


def test_other():
    assert odd.__doc__
""",
    "tests/test_units.py": """\
import pytest

from pantry import convert
from pantry.units import parse_amount


def test_convert():
    assert convert(1, "kg") == 1000
    assert convert(1000, "g", "kg") == 1


def test_unknown_unit():
    with pytest.raises(ValueError, match="stone"):
        convert(1, "stone")


@pytest.mark.parametrize("text", ["2 kg", "2.0kg"])
def test_parse(text):
    assert parse_amount(text) == (2.0, "kg")


def test_parse_nonsense():
    with pytest.raises(ValueError):
        parse_amount("much")
""",
    "tests/test_shelf.py": """\
from pantry import Label, Shelf


def test_add():
    shelf = Shelf()
    shelf.add("salt", 5)
    assert shelf.things == {"salt": 5}
    shelf.add("salt", 2)
    assert shelf.things == {"salt": 7}


def test_find():
    assert Shelf({"salt": 1, "sugar": 2, "oats": 3}).find("s") == ["salt", "sugar"]


def test_find_nothing():
    assert Shelf().find("s") == []


def test_heaviest():
    assert Shelf({"salt": 1, "oats": 3}).heaviest() == ["oats"]
    assert Shelf({"salt": 1, "oats": 3}).heaviest(2) == ["oats", "salt"]


def test_label():
    assert Label("salt").render() == "|salt    |"
    assert len(Label("salt")) == 10


def test_long_label():
    assert Label("cinnamon", width=6).render() == "|cinn|"
""",
    "tests/test_words.py": """\
import pantry


def test_slug():
    assert pantry.slug("Green Peas") == "green-peas"
    assert pantry.slug("Salt") == "salt"


def test_other():
    assert pantry.__doc__.startswith("Shelves")


def test_open_shelf():
    assert pantry.open_shelf().things == {}
""",
}
