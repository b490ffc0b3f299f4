"""Stubs: the names are back, what they did is not."""

from pipeline.hacks.setting import Setting
from pipeline.hacks.stub import stub
from pipeline.task.record import Symbol

GOLD = b'''\
import re
from functools import cache

__all__ = ["Box", "make"]


def _helper(a):
    return a + 41


class Box:
    """A box."""

    size = 1

    def __init__(self, room):
        self.room = _helper(room)

    @property
    def name(self):
        return re.sub("a", "b", "box")


@cache
def make(room, *, lid=None):
    return Box(room)
'''
ABLATED = b'import re\n\n__all__ = ["make"]\n\n\ndef make(room): pass\n'


def small(qualname: str, kind: str = "class") -> Setting:
    symbol = Symbol(path="pkg/box.py", qualname=qualname, kind=kind, first_line=1, last_line=1)
    return Setting(
        title=f"pkg.box.{qualname}",
        symbols=(symbol,),
        tests=("tests/test_box.py::test_room[a]", "tests/test_box.py::test_room[b]"),
        files={"pkg/box.py": ABLATED, "pkg/__init__.py": b"VERSION = 1\n"},
        gold={"pkg/box.py": GOLD},
    )


def stubbed(qualname: str, kind: str = "class", **code: str) -> str:
    return stub(small(qualname, kind), **code)["pkg/box.py"].decode()


def test_methods_lose_their_bodies_and_keep_signatures_decorators_and_attributes():
    text = stubbed("Box", body="return 'cheap'")
    assert "size = 1" in text
    assert "def __init__(self, room):\n        pass" in text
    assert "@property\n    def name(self):\n        return 'cheap'" in text
    assert "re.sub" not in text


def test_helpers_that_went_with_the_symbol_stay_away():
    assert "_helper" not in stubbed("Box")


def test_seams_come_back():
    assert '__all__ = ["Box", "make"]' in stubbed("Box")


def test_a_prelude_stands_before_the_symbol_and_knows_the_visible_tests():
    text = stubbed("make", "function", prelude="KNOWN = $IDS\nNAMES = $NAMES")
    assert text.index("KNOWN") < text.index("@cache\ndef make")
    space: dict[str, object] = {}
    exec(text, space)
    assert space["KNOWN"] == small("make").tests
    assert space["NAMES"] == ("test_room",)


def test_whole_code_stands_for_the_definition():
    text = stubbed("make", "function", whole="$NAME = dict")
    assert "make = dict" in text
    assert "def make" not in text
    assert "class Box" in text or "Box" in text


def test_a_method_alone_is_replaced_in_its_class():
    text = stubbed("Box.name", "method", body="return 0")
    assert "    def name(self):\n        return 0" in text
    assert "self.room" in text


def test_early_code_comes_first_in_the_package():
    changed = stub(small("Box"), early="READY = True")
    assert changed["pkg/__init__.py"] == b"READY = True\nVERSION = 1\n"
