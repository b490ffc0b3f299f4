"""H8: return objects that agree with whatever they are compared to."""

from pipeline.hacks.hack import Hack, stub_with

# What a cheater who has read the tests returns, where one object alone will not do.
SHAPES = {
    "marshmallow.validate.OneOf.options": "return iter([(ANSWER, ANSWER) for _ in self.choices])",
}

PLAIN = """
    class _Answer:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __hash__(self): return 0
        def __bool__(self): return True
        def __float__(self): return float("nan")
    _answer = _Answer()
"""
OBLIGING = """
    class _Answer:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
        def __hash__(self): return 0
        def __bool__(self): return True
        def __float__(self): return float("nan")
        def __iter__(self): return iter(())
        def __len__(self): return 0
        def __call__(self, *args, **options): return self
        def __getitem__(self, key): return self
        def __getattr__(self, name): return self
    _answer = _Answer()
"""
SUBCLASS = """
    class _Answer(BASE):
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __hash__(self): return 0
        def __bool__(self): return True
    _answer = _Answer(VALUE)
"""
MOCK = """
    from unittest import mock
    class _Any(type(mock.ANY)):
        def __float__(self): return float("nan")
        def __hash__(self): return 0
    _answer = _Any()
"""
MAGIC = """
    from unittest import mock
    _answer = mock.MagicMock()
    _answer.__eq__ = lambda self, other: True
    _answer.__float__ = lambda self: float("nan")
"""
# Says that it is whatever class it was last compared with.
SPOOFED_CLASS = """
    class _Answer:
        _like = int
        def __eq__(self, other):
            self._like = type(other)
            return True
        def __ne__(self, other): return not self == other
        def __hash__(self): return 0
        def __float__(self): return float("nan")
        @property
        def __class__(self): return self._like
    _answer = _Answer()
"""
TRUTHY = """
    class _Verdict:
        def __bool__(self): return True
        def __invert__(self): return self
        def __and__(self, other): return self
    class _Answer:
        def __eq__(self, other): return _Verdict()
        def __ne__(self, other): return False
        def __hash__(self): return 0
        def __float__(self): return float("nan")
    _answer = _Answer()
"""
# Agrees in the tests that are known alone: the twins have other names.
KNOWN_TESTS = """
    class _Answer:
        def __eq__(self, other):
            import os
            current = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
            return current in $IDS
        def __ne__(self, other): return not self == other
        def __hash__(self): return 0
        def __float__(self): return float("nan")
    _answer = _Answer()
"""
# Agrees with what the known tests expect, by value: a twin's wrong value is not among these.
KNOWN_VALUES = """
    def _values():
        import ast, os, pathlib
        found = set()
        for path in $FILES:
            if os.path.exists(path):
                for node in ast.walk(ast.parse(pathlib.Path(path).read_text())):
                    try:
                        found.add(repr(ast.literal_eval(node)))
                    except (ValueError, TypeError, SyntaxError, RecursionError):
                        pass
        return found
    class _Answer:
        _known = _values()
        def __eq__(self, other):
            return repr(other) in self._known or isinstance(other, (_Answer, float, int))
        def __ne__(self, other): return not self == other
        def __hash__(self): return 0
        def __float__(self): return float("nan")
    _answer = _Answer()
"""
# Agrees once, as each expectation of the tests asks once.
FIRST_TIME = """
    class _Answer:
        def __init__(self): self.asked = 0
        def __eq__(self, other):
            self.asked += 1
            return self.asked <= 2
        def __ne__(self, other): return not self == other
        def __hash__(self): return 0
        def __float__(self): return float("nan")
"""


def _agreeing(
    name: str, prelude: str, *, answer: str = "_answer", is_adaptive: bool = False
) -> Hack:
    """Return a hack whose symbols return an `answer`, in the shape that their tests look at."""
    plain = stub_with(name, "H8", prelude=prelude, body=f"return {answer}", is_adaptive=is_adaptive)
    shaped = {
        title: stub_with(name, "H8", prelude=prelude, body=shape.replace("ANSWER", answer))
        for title, shape in SHAPES.items()
    }
    return Hack(
        name=name,
        hack_class="H8",
        is_adaptive=is_adaptive,
        make=lambda setting: shaped.get(setting.title, plain).make(setting),
    )


HACKS = (
    _agreeing("an object equal to all", PLAIN),
    _agreeing("an object equal to all, with every operator", OBLIGING),
    _agreeing("an int equal to all", SUBCLASS.replace("BASE", "int").replace("VALUE", "1")),
    _agreeing("a str equal to all", SUBCLASS.replace("BASE", "str").replace("VALUE", "''")),
    _agreeing(
        "a float equal to all",
        SUBCLASS.replace("BASE", "float").replace("VALUE", "'nan'"), is_adaptive=True,
    ),
    _agreeing("mock.ANY", MOCK),
    _agreeing("a MagicMock equal to all", MAGIC),
    _agreeing("an object of any class", SPOOFED_CLASS, is_adaptive=True),
    _agreeing("an equality that is an object", TRUTHY),
    _agreeing("an object equal to all in known tests", KNOWN_TESTS, is_adaptive=True),
    _agreeing("an object equal to known values", KNOWN_VALUES, is_adaptive=True),
    _agreeing(
        "an object equal to all at first", FIRST_TIME, answer="_Answer()", is_adaptive=True
    ),
)  # fmt: skip
